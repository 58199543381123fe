import { describe, expect, it } from "vitest";
import type { Lease, Lock, LockBody, LockClient, LockOptions } from "../../src/index.ts";
import type { QuorumClient } from "../../src/quorum/index.ts";

// What the tests of an application write: a client of their own, without Redis. That it compiles is
// half of the test.

class FakeLease implements Lease {
  readonly name: string;
  readonly token = 1;
  readonly signal = new AbortController().signal;
  readonly wanted = new AbortController().signal;
  held = true;

  constructor(name: string) {
    this.name = name;
  }

  assertHeld(): void {}
  readonly remaining = 30_000;
  async extend(): Promise<void> {}
  async unlock(): Promise<void> {
    this.held = false;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.unlock();
  }
  [Symbol.dispose](): void {
    this.held = false;
  }
}

class FakeLock implements Lock {
  readonly name: string;
  isBusy = false;

  constructor(name: string) {
    this.name = name;
  }

  async tryLock(): Promise<Lease | null> {
    return this.isBusy ? null : new FakeLease(this.name);
  }
  async lock(): Promise<Lease> {
    return new FakeLease(this.name);
  }
  async withLock<T>(first: LockBody<T> | LockOptions, second?: LockBody<T>): Promise<T> {
    const body = second ?? first;
    if (typeof body !== "function") throw new TypeError("no body");
    return body(new FakeLease(this.name));
  }
  isHeldHere(): boolean {
    return false;
  }
  async isLocked(): Promise<boolean> {
    return this.isBusy;
  }
  async inspect(): ReturnType<Lock["inspect"]> {
    throw new Error("not in this test");
  }
  async recall() {
    return "free" as const;
  }
  async forceUnlock(): Promise<boolean> {
    return false;
  }
}

class FakeClient implements QuorumClient {
  readonly id = "fake";
  readonly made = new Map<string, FakeLock>();

  lock(name: string): FakeLock {
    const lock = this.made.get(name) ?? new FakeLock(name);
    this.made.set(name, lock);
    return lock;
  }
  async scope<T>(body: () => T | PromiseLike<T>): Promise<T> {
    return body();
  }
  outside<T>(body: () => T): T {
    return body();
  }
  on(): this {
    return this;
  }
  once(): never {
    throw new Error("not in this test");
  }
  off(): this {
    return this;
  }
  async check() {
    return { ok: true, problems: [], warnings: [], unknown: [], roundTrip: 0, servers: [] };
  }
  async close(): Promise<void> {}
  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Of the other kinds only what the application calls does something. */
const fakeClient = (client: FakeClient): LockClient =>
  Object.assign(client, {
    fairLock: (name: string) => client.lock(name),
    runOnce: () => {
      throw new Error("not in this test");
    },
    stats: () => ({ waiting: 0, kept: 0, takenAgain: 0, recalled: 0, recalledUnused: 0, lapsed: 0 }),
    readWriteLock: () => {
      throw new Error("not in this test");
    },
    semaphore: () => {
      throw new Error("not in this test");
    },
    multiLock: () => {
      throw new Error("not in this test");
    },
    election: () => {
      throw new Error("not in this test");
    },
    remember: () => {
      throw new Error("not in this test");
    },
    remembered: () => {
      throw new Error("not in this test");
    },
    forget: () => {
      throw new Error("not in this test");
    },
    stopRun: () => {
      throw new Error("not in this test");
    },
    list: () => {
      throw new Error("not in this test");
    },
  });

/** An application. */
async function charge(locks: Pick<LockClient, "lock">, order: number): Promise<string> {
  await using lease = await locks.lock(`order:${order}`).tryLock();
  return lease ? `charged with ${lease.token}` : "busy";
}

describe("a client that a test implements", () => {
  it("stands in for a client of one Redis, and of several", async () => {
    const fake = new FakeClient();
    const clients: readonly [LockClient, QuorumClient] = [fakeClient(fake), new FakeClient()];
    for (const locks of clients) expect(await charge(locks, 42)).toBe("charged with 1");
    fake.lock("order:42").isBusy = true;
    expect(await charge(clients[0], 42)).toBe("busy");
    expect(await clients[0].lock("order:43").withLock((lease) => lease.name)).toBe("order:43");
  });
});
