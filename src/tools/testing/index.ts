import { TestClient, type TestLocks, type TestLocksOptions } from "./client.ts";
import { Memory } from "./memory.ts";

export type { Busy, BusyKind, LockTests, TestLocks, TestLocksOptions } from "./client.ts";

/**
 * Creates a lock client for tests: the same waiting, leases, scopes, events and errors over the
 * memory of this process, without a Redis. Each one has locks of its own; `locks.test.another()`
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
  return new TestClient(new Memory(), new Set(), options);
}
