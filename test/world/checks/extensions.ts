import { codeOf } from "../callers.ts";
import { nameOf, owners } from "../ownership.ts";
import type { Check, Extension, Holding, Run } from "../run.ts";

/** The part of a lease that counts: clocks run at rates that differ by 1 %. */
const SURE = 0.98;
/** In ms: what a lease is shorter by, for the grain of Redis's clock and a late timer. */
const GRAIN = 5;

/** What `extend()` has promised. */
export const extensions = (run: Run): Check => {
  /** Until when a lease must be held, in ms of the run. */
  const promised = new Map<
    Holding,
    { readonly ms: number; readonly since: number; readonly until: number }
  >();
  /** A force-release, `close()`, a pause or a step of its clock may end a lease early. */
  const isExcused = (holding: Holding, since: number): boolean => {
    const { process } = holding.member;
    const isLate = process.pausedUntil > since || process.forwardAt > since;
    return isLate || run.forced.has(holding) || run.isClosing(holding.member) || holding.isLeaving;
  };
  const who = ({ member, kindName, name }: Holding): string =>
    `${kindName} ${name} of ${member.process.name}`;

  const resolved = ({ holding, ms, since, wasHeld }: Extension): void => {
    const { lease, member, name } = holding;
    if (!wasHeld) run.fail(`${who(holding)} was lost, and extend(${ms}) resolved`);
    if (!wasHeld || isExcused(holding, since)) return;
    const left = ms * SURE - GRAIN - (run.time.now - since);
    if (left <= 0) return;
    if (lease.remaining < left)
      run.fail(
        `${who(holding)}: ${lease.remaining} ms remain after extend(${ms}), and not ${left.toFixed(0)}`,
      );
    const { redis } = run.server;
    const isRead = nameOf(`holdfast:{${name}}`) !== null;
    const last = Math.max(
      0,
      ...owners(run).flatMap((one) =>
        one.name === name && one.process === member.process.number ? one.until - redis.ms : [],
      ),
    );
    if (isRead && last < left)
      run.fail(
        `${who(holding)}: Redis keeps it for ${last} ms after extend(${ms}), and not ${left.toFixed(0)}`,
      );
    promised.set(holding, { ms, since, until: since + ms * SURE - GRAIN });
  };

  return {
    promise: "`extend(ms)` makes the lease last at least `ms` from now; that of a lost lease throws.",
    extended(extension, error) {
      const { holding, ms } = extension;
      if (error === null) {
        resolved(extension);
        return;
      }
      const code = codeOf(error);
      const isKnown = /^LOCK_(LOST|UNAVAILABLE|RELEASED)$/.test(code);
      if (!isKnown) run.fail(`extending ${who(holding)} to ${ms} ms: ${(error as Error).stack}`);
      if (code === "LOCK_LOST" && holding.lease.held)
        run.fail(`${who(holding)} is held, and extend(${ms}) says that it is lost`);
      if (code === "LOCK_RELEASED" && !holding.isLeaving)
        run.fail(`${who(holding)} is not given back, and extend(${ms}) says that it is`);
      if (code === "LOCK_UNAVAILABLE" && !run.hasFaults)
        run.fail(`extending ${who(holding)} to ${ms} ms: LOCK_UNAVAILABLE without a fault`);
    },
    inspect() {
      const { now } = run.time;
      for (const [holding, { ms, since, until }] of promised) {
        const { member, lease } = holding;
        if (now >= until || member.process.isDead || isExcused(holding, since)) promised.delete(holding);
        else if (member.process.busyUntil <= now && !lease.held)
          run.fail(
            `${who(holding)} is lost ${(until - now).toFixed(0)} ms before the end that extend(${ms}) gave it: ` +
              `${lease.signal.reason}`,
          );
      }
    },
  };
};
