import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { block } from "../support/block.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// What must not leak out of a scope, or into one.

const parties = new Parties();
let a: Party;
let b: Party;

beforeAll(async () => {
  [a, b] = [await parties.join(), await parties.join()];
  a.locks.on("error", () => {}); // leases that these tests leave behind on purpose
});
afterAll(parties.close);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

describe("scopes", () => {
  it("a long one does not retain what it has unlocked", async () => {
    const gone: WeakRef<AbortSignal>[] = [];
    await a.locks.scope(async () => {
      const kept = await a.locks.lock(freshName()).lock();
      for (let i = 0; i < 300; i++) {
        const lock = i % 2 ? a.locks.lock(freshName()) : a.locks.multiLock([freshName(), freshName()]);
        const lease = await lock.lock();
        gone.push(new WeakRef(lease.signal));
        await lease.unlock();
      }
      await a.redis.ping(); // what a WeakRef has shown lives to the end of the turn
      collect();
      expect(gone.filter((signal) => signal.deref()).length).toBeLessThan(100);
      expect(kept.held).toBe(true);
      await kept.unlock();
    });
  });

  it("a lasting hold does not retain the signals of re-entrant leases", async () => {
    const gone: WeakRef<AbortSignal>[] = [];
    const lock = a.locks.lock(freshName());
    await a.locks.scope(async () => {
      const kept = await lock.lock();
      for (let i = 0; i < 300; i++) {
        const own = await lock.lock();
        gone.push(new WeakRef(own.signal));
        await a.locks.scope(async () => {
          const taken = await lock.lock();
          gone.push(new WeakRef(taken.signal));
        });
        await own.unlock();
      }
      await a.redis.ping();
      collect();
      expect(gone.filter((signal) => signal.deref()).length).toBeLessThan(100);
      expect(kept.held).toBe(true);
      await kept.unlock();
    });
  });

  it("bodies that borrow a multi-lock leave no listeners on the leases that they borrow", async () => {
    const gone: WeakRef<AbortSignal>[] = [];
    const lock = a.locks.multiLock([freshName(), freshName()]);
    await lock.withLock(async () => {
      for (let i = 0; i < 300; i++)
        await lock.withLock((lease) => {
          gone.push(new WeakRef(lease.signal));
        });
      await a.redis.ping();
      collect();
      expect(gone.filter((signal) => signal.deref()).length).toBeLessThan(100);
    });
  });

  it("a writer that reads leaves nothing of its name behind", async () => {
    const grown = async (): Promise<number> => {
      collect();
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < 500; i++) {
        const { read, write } = a.locks.readWriteLock(freshName());
        await write.withLock(() => read.withLock(() => {}));
      }
      await a.redis.ping();
      collect();
      return (process.memoryUsage().heapUsed - before) / 500;
    };
    await grown();
    // Bytes for each name: a queue of callers that nobody takes away has 650.
    expect(Math.min(await grown(), await grown(), await grown())).toBeLessThan(450);
  });

  it("a listener does not run in the scope of the caller that armed the client's timer", async () => {
    const [mine, other] = [a.locks.lock(freshName()), a.locks.lock(freshName())];
    const foreign = await other.tryLock(0, 3_000);
    let heldInListener: boolean | null = null;
    let entered = false;
    foreign?.signal.addEventListener("abort", () => {
      heldInListener = mine.isHeldHere();
      mine.withLock(() => {
        entered = true;
      });
    });
    await mine.withLock(async () => {
      // This lease arms the timer inside the scope; the foreign one ends on it.
      await a.locks.lock(freshName()).tryLock(0, 1_000);
      await until(() => heldInListener !== null, { what: "the foreign lease to end" });
      await a.redis.ping();
      expect(entered).toBe(false);
    });
    expect(heldInListener).toBe(false);
    await until(() => entered, { what: "its turn" });
  });

  it.each(["lock", "fairLock"] as const)(
    "a call enters once what a call beside it gets just then: %s",
    async (kind) => {
      const lock = a.locks[kind](freshName());
      await (await b.locks.lock(lock.name).lock()).unlock(); // Redis knows the scripts
      const foreign = await b.locks.lock(lock.name).lock();
      await a.locks.scope(async () => {
        const waiting = lock.lock();
        await until(async () => (await lock.inspect()).waiters?.length === 1);
        const released = foreign.unlock();
        await nextTurn(); // what is there to be read is read before the next turn
        // On most machines the grant is there by then, and is not read when these calls are told
        // that the lock is held.
        block(100);
        const body = lock.withLock({ wait: 0 }, () => {}).catch(() => {});
        const lease = lock.tryLock();
        await Promise.all([released, body]);
        await b.redis.ping(); // the first one still has it when the others look once more
        await (await lease)?.unlock();
        await (await waiting).unlock();
        expect(await lock.isLocked()).toBe(false);
      });
    },
  );
});
