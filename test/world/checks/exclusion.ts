import { PERMITS } from "../kinds.ts";
import type { Check, Holding, Run } from "../run.ts";

/** Holders that exclude each other; null: they may be inside together. */
function conflict(holdings: readonly Holding[]): readonly [Holding, Holding] | null {
  let used = 0;
  for (const [i, one] of holdings.entries()) {
    if (one.kind.mode === "permits") {
      used += one.units;
      if (used > PERMITS) return [holdings[0] as Holding, one];
      continue;
    }
    for (const other of holdings.slice(0, i))
      if (one.scope && one.scope === other.scope) continue;
      else if (one.kind.mode !== "read" || other.kind.mode !== "read") return [other, one];
  }
  return null;
}

const shown = ({ member, kindName, lease }: Holding): string =>
  `${member.process.name} (${kindName}, ${"token" in lease ? `token ${lease.token}` : "no token"})`;

/** `held` is read as each process would read it now, except while it stands still. */
export const exclusion = (run: Run): Check => {
  const look = (name: string): void => {
    const held = run.inside(name).filter((holding) => {
      const { member, lease } = holding;
      const isAwake = member.process.busyUntil <= run.time.now + 1;
      return isAwake && lease.held && !run.forced.mayBelieve(holding);
    });
    const pair = conflict(held);
    if (pair) run.fail(`two holders of ${name}: ${shown(pair[0])} and ${shown(pair[1])}`);
  };
  return {
    promise: "At most one caller holds the lock; a writer excludes readers; permits are never exceeded.",
    entered: ({ name, lease }) => {
      if (lease.held) look(name);
    },
    inspect() {
      for (const name of run.holdings.keys()) look(name);
    },
  };
};
