import { TestClient, type TestLocks, type TestLocksOptions } from "./client.ts";
import { TestNetwork } from "./test-network.ts";

export type { BusyKind, LockTests, TestLocks, TestLocksOptions, Undoable } from "./client.ts";

/**
 * Creates a lock client for tests: the client that applications use, and the scripts that it sends,
 * on a Redis in the memory of this process. Each one has locks of its own; `locks.test.another()`
 * shares them, as another process would. It leaves no timer that keeps the process alive, but
 * callers that wait do: `locks.close({ grace: 0 })` ends them. Fake timers of a test runner do not
 * reach it.
 *
 * @throws TypeError or RangeError for bad options.
 * @example
 * const locks = createTestLocks();
 * const lease = await locks.lock("order:42").lock();
 * await locks.test.lose("order:42");
 * console.log(lease.held); // false
 */
export function createTestLocks(options: TestLocksOptions = {}): TestLocks {
  return new TestClient(new TestNetwork(), new Set(), options);
}
