// Two requests for one order reach two processes at once: the card is charged once.
//
// Runs without Redis. In a service, createLockClient(redis) takes the place of createTestLocks().
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { isLockLost, type LockClient } from "holdfast";
import { createTestLocks } from "holdfast/testing";

/** Stands for the database: the receipts of the paid orders. */
const receipts = new Map<string, string>();

/** Stands for the payment provider. It knows a charge by its idempotency key. */
class Provider {
  readonly charges = new Map<string, string>();
  asked = 0;

  async charge(order: string, how: { idempotencyKey: string; signal: AbortSignal }): Promise<string> {
    this.asked++;
    const receipt = this.charges.get(how.idempotencyKey) ?? `receipt of order ${order}`;
    this.charges.set(how.idempotencyKey, receipt);
    await setTimeout(50, undefined, { signal: how.signal });
    return receipt;
  }
}

const provider = new Provider();

/** What runs in each process. */
class Payments {
  readonly #process: string;
  readonly #locks: LockClient;

  constructor(process: string, locks: LockClient) {
    this.#process = process;
    this.#locks = locks;
  }

  pay(order: string): Promise<string> {
    return this.#locks.lock(`order:${order}`).withLock({ wait: 5_000 }, async (lease) => {
      // The lock makes callers take turns. Only this line knows what was done before.
      const before = receipts.get(order);
      if (before) {
        console.log(`${this.#process}: order ${order} is paid already`);
        return before;
      }
      console.log(`${this.#process}: charges order ${order}`);
      const receipt = await provider.charge(order, { idempotencyKey: order, signal: lease.signal });
      lease.assertHeld(); // right before the write: throws if the lock is lost
      receipts.set(order, receipt);
      return receipt;
    });
  }
}

const locks = createTestLocks();
const [one, other] = [new Payments("process 1", locks), new Payments("process 2", locks.test.another())];

const both = await Promise.all([one.pay("42"), other.pay("42")]);
assert.equal(provider.asked, 1, "the card is charged once");
assert.equal(both[0], both[1], "and both requests get the receipt");

// A process stands still for longer than its lease, while the provider works: it must not go on.
const paying = one.pay("43").catch((error: unknown) => error);
await locks.test.expire("order:43");
assert.ok(isLockLost(await paying), "the caller learns that it has lost the lock");
console.log("process 1: lost the lock of order 43, and has written nothing");

// The next request asks the provider again, and the idempotency key prevents a second charge.
await other.pay("43");
assert.equal(provider.asked, 3);
assert.equal(provider.charges.size, 2, "two orders, two charges");

await locks.close();
