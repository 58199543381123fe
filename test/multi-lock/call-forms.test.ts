import { formsOf } from "../contract/forms.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";
import { until } from "../support/until.ts";

// Several locks are taken in the forms of a single one.

const several = new MultiLocks();

formsOf(() => {
  const { mine, theirs } = several;
  const names = three();
  return {
    mine: mine.locks.multiLock(names),
    theirs: theirs.locks.multiLock(names),
    locks: mine.locks,
    untilWaiting: () => until(async () => (await mine.locks.lock(names[0]).inspect()).waiters?.length === 1),
  };
});
