import { afterAll } from "vitest";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { formsOf } from "../contract/forms.ts";
import { three } from "../support/multi-locks.ts";
import { until } from "../support/until.ts";

// In memory, several locks are taken in the forms of a single one.

const one = createTestLocks();
const other = one.test.another();
afterAll(async () => {
  for (const locks of [one, other]) await locks.close({ grace: 0 });
});

formsOf(() => {
  const names = three();
  return {
    mine: one.multiLock(names),
    theirs: other.multiLock(names),
    locks: one,
    untilWaiting: () => until(async () => (await one.lock(names[0]).inspect()).waiters?.length === 1),
  };
});
