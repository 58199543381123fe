import type { Check, Holding, Request, Run } from "../run.ts";

/** In ms: until a process knows that another one waits, and for how long it may go on after that. */
const KNOWN = 100;
const GOES_ON = 25;

/** Kinds with a queue in Redis, and hand-offs within a process. */
const HANDS_ON = /^(lock|read|write|lock of a shared name)$/;

export const turns = (run: Run): Check => {
  /** By process, name and the beginning of its hold: the first entry that was late. It learned of it then. */
  const known = new Map<string, number>();
  /** Since when the process of this caller has had its present hold. */
  const holdsSince = (name: string, { member }: Request): number =>
    Math.max(0, ...run.grants.ownedBy(name, member.process.number).map(({ at }) => at));
  const excludes = (one: Holding, other: Request): boolean =>
    one.kind.mode !== "read" || other.kind.mode !== "read";
  return {
    promise: "After another process has begun to wait, a process goes on for at most 25 ms.",
    entered(holding) {
      const { name, kindName, member } = holding;
      if (run.hasFaults || !HANDS_ON.test(kindName) || holding.together) return;
      const { now } = run.time;
      const since = holdsSince(name, holding);
      if (now - since < KNOWN + GOES_ON + run.slack) return;
      const waiter = run.waiting(name).find((other) => {
        const isOther = other.member !== member && other.wait !== null && excludes(holding, other);
        return isOther && other.since < now - KNOWN - GOES_ON - run.slack;
      });
      if (!waiter) return;
      const id = `${member.process.number} ${name} ${since}`;
      const first = known.get(id) ?? now;
      known.set(id, first);
      if (now - first > GOES_ON + run.slack)
        run.fail(
          `${kindName} ${name}, ${member.process.name}: enters a hold that its process has had for ` +
            `${(now - since).toFixed(0)} ms, while ${waiter.member.process.name} has waited for ` +
            `${(now - waiter.since).toFixed(0)} ms`,
        );
    },
  };
};
