import { aroundEach, describe } from "vitest";
import { until } from "../support/until.ts";
import { whileTimePasses } from "../world/virtual-time.ts";
import { describeLock } from "./describe-lock.ts";
import { formsOf } from "./forms.ts";
import { clientOn, inVirtualTime, startMaster, threeInVirtualTime } from "./in-virtual-time.ts";
import { KINDS, type Kind } from "./kinds.ts";

// All kinds in one file, and so in one process, which loads the modules once.
for (const [kind, { isQuorum }] of Object.entries(KINDS))
  describeLock(kind as Kind, [isQuorum ? threeInVirtualTime : inVirtualTime]);

// Several locks are taken in the forms of a single one.
describe("several locks in virtual time", () => {
  const { redis } = startMaster();
  const [mine, theirs] = [clientOn(redis), clientOn(redis)];
  let pairs = 0;
  aroundEach((test) => whileTimePasses(test));
  formsOf(() => {
    const names = ["a", "b", "c"].map((name) => `pair ${pairs}: ${name}`);
    pairs++;
    return {
      mine: mine.multiLock(names),
      theirs: theirs.multiLock(names),
      locks: mine,
      untilWaiting: () =>
        until(async () => (await mine.lock(names[0] ?? "").inspect()).waiters?.length === 1),
    };
  });
});
