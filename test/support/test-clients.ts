import { afterEach } from "vitest";
import { createTestLocks, type TestLocks, type TestLocksOptions } from "../../src/tools/testing/index.ts";

/** The test clients of one file, which are closed after each test. */
export class TestClients {
  readonly #open: TestLocks[] = [];

  constructor() {
    afterEach(async () => {
      for (const locks of this.#open.splice(0)) await locks.close({ grace: 0 });
    });
  }

  /** These are closed too. */
  push(...locks: readonly TestLocks[]): void {
    this.#open.push(...locks);
  }

  /** Two clients of one memory, as two processes have them. */
  pair(options: TestLocksOptions = {}): [TestLocks, TestLocks] {
    const one = createTestLocks(options);
    const other = one.test.another();
    this.push(one, other);
    return [one, other];
  }
}
