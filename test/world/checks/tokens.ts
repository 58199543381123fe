import type { Check, Run } from "../run.ts";

/** Tokens of late leases count too: a caller may have sent them with a write. */
export const tokens = (run: Run): Check => {
  const highest = new Map<string, number>();
  /** With the scope that got it; undefined: none did. */
  const given = new Map<string, object | undefined>();
  return {
    promise: "The token grows with every change of holder, and none is given twice.",
    entered(holding) {
      const { name, kind, kindName, lease, member, scope } = holding;
      if (!kind.hasTokens || kind.mode === "permits" || !("token" in lease)) return;
      const { token } = lease as { token: number };
      // It enters its own lock again.
      if (scope && given.get(`${name} ${token}`) === scope) return;
      const last = highest.get(name) ?? 0;
      const isShared = kind.mode === "read";
      const who = `${kindName} ${name}, ${member.process.name}`;
      if (!isShared && given.has(`${name} ${token}`)) run.fail(`${who}: token ${token} was given twice`);
      given.set(`${name} ${token}`, scope);
      // A lease that was over when its caller got it may have been overtaken, or taken away.
      const isHeld = lease.held && !run.forced.mayBelieve(holding);
      if (isHeld && (isShared ? token < last : token <= last))
        run.fail(`${who}: token ${token} after ${last}`);
      if (isHeld) highest.set(name, Math.max(last, token));
    },
  };
};
