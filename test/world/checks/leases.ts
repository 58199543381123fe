import { codeOf } from "../callers.ts";
import { owners } from "../ownership.ts";
import type { Check, Holding, Run } from "../run.ts";

/** What a caller may believe of its lease. */
export const leases = (run: Run): Check => {
  const isAwake = ({ member }: Holding): boolean => member.process.busyUntil <= run.time.now + 1;
  return {
    promise: "`held` is false before Redis lets another caller in, and a lease is lost only by a fault.",
    entered({ lease }) {
      // Read early, as callers that hand it on do.
      if (run.dice.chance(0.5)) void lease.signal;
    },
    leaving({ kindName, name, lease, isFixed, member }) {
      if (!lease.held && !lease.signal.aborted)
        run.fail(`${kindName} ${name} of ${member.process.name} is not held, and its signal is not aborted`);
      if (run.hasFaults || isFixed || lease.held || run.isClosing(member)) return;
      run.fail(
        `${kindName} ${name} of ${member.process.name} was lost without a fault: ${lease.signal.reason}`,
      );
    },
    left({ kindName, name, isFixed, member }, error) {
      if (error === null || run.hasFaults || isFixed || run.isClosing(member)) return;
      run.fail(
        `giving ${kindName} ${name} of ${member.process.name} back failed without a fault: ${codeOf(error)}`,
      );
    },
    inspect() {
      const inRedis = new Set(owners(run).map(({ name, process }) => `${name} ${process}`));
      for (const [name, holdings] of run.holdings)
        for (const holding of holdings) {
          const { member, lease, kind } = holding;
          if (member.process.isDead || holding.isLeaving || kind.family in UNREAD || !isAwake(holding))
            continue;
          if (run.forced.mayBelieve(holding)) continue;
          if (lease.held && !inRedis.has(`${name} ${member.process.number}`))
            run.fail(
              `${name}: ${member.process.name} believes that it holds it, and Redis has no hold of it`,
            );
        }
    },
  };
};

/** Their keys have other forms. */
const UNREAD = { spin: true, redisson: true, redissonFenced: true, once: true };
