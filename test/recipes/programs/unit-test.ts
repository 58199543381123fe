import { type LockClient, LockLostError, LockTimeoutError } from "holdfast";
import { createTestLocks } from "holdfast/testing";
import { prove, sleep } from "./support.ts";

// #region application
export interface Bank {
  isPaid(order: string): Promise<boolean>;
  pay(order: string, how: { signal: AbortSignal; fence: number }): Promise<void>;
}

/** What is tested. It takes the lock client that it works with. */
export class Payments {
  readonly #locks: LockClient;
  readonly #bank: Bank;

  constructor(locks: LockClient, bank: Bank) {
    this.#locks = locks;
    this.#bank = bank;
  }

  async pay(order: string): Promise<"paid" | "busy" | "lost"> {
    try {
      await this.#locks.lock(`order:${order}`).withLock({ wait: 5_000 }, async ({ signal, token }) => {
        if (!(await this.#bank.isPaid(order))) await this.#bank.pay(order, { signal, fence: token });
      });
      return "paid";
    } catch (error) {
      if (error instanceof LockTimeoutError) return "busy";
      if (error instanceof LockLostError) return "lost";
      throw error;
    }
  }

  /** Every process calls it each minute; one of them sends it. */
  async report(send: () => Promise<void>): Promise<boolean> {
    const { ran } = await this.#locks.runOnce("report", { every: 60_000 }, send);
    return ran;
  }
}
// #endregion

const began = performance.now();

// #region tests
const locks = createTestLocks();
const paid: string[] = [];
const bank: Bank = {
  isPaid: async (order) => paid.includes(order),
  pay: async (order, { signal }) => {
    await sleep(20, undefined, { signal });
    paid.push(order);
  },
};
const payments = new Payments(locks, bank);
prove((await payments.pay("42")) === "paid", "it pays");

// Somebody else holds the lock for longer than the caller waits: five seconds that take none.
const other = await locks.test.busy("order:42");
const refused = payments.pay("42");
await locks.test.advance(5_000);
prove((await refused) === "busy", "it says that it is busy");
await other.undo();

// The lock is lost while the bank is asked.
const stopped = payments.pay("7");
await locks.test.lose("order:7");
prove((await stopped) === "lost", "it ends when the lock is lost");

// Two processes have a client each, with the same locks.
const elsewhere = new Payments(locks.test.another(), bank);
const both = await Promise.all([payments.pay("43"), elsewhere.pay("43")]);
prove(both.join() === "paid,paid", "one waits for the other");
prove(paid.join() === "42,43", "each order is paid once");

// A process is suspended for longer than its lease, and another one takes over.
const stalled = payments.pay("44");
await locks.test.advance(0);
const pause = await locks.test.pause();
await locks.test.advance(40_000);
prove((await elsewhere.pay("44")) === "paid", "another process pays after the lease");
await pause.undo();
prove((await stalled) === "lost", "the suspended one stops");

// An interval passes.
const send = async (): Promise<void> => {};
prove(await payments.report(send), "it sends the report");
prove(!(await elsewhere.report(send)), "nobody sends it again within the minute");
await locks.test.advance(60_000);
prove(await elsewhere.report(send), "it sends the next one");

// At the end of each test: callers that still wait are refused, and what is still held is taken.
await locks.close({ grace: 0 });
// #endregion

prove(performance.now() - began < 60_000, "nothing of that was waited for");
