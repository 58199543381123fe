import { Redis } from "ioredis";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import {
  createLockClient,
  type Lock,
  type LockClient,
  LockLostError,
  LockUnavailableError,
} from "../../src/index.ts";
import { failure, leased } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// What is thrown to a caller names the caller's function, wherever the client found out what is wrong.

const parties = new Parties();
afterAll(parties.close);

/** A client of a Redis that nobody listens for. */
function unreachable(options = {}): LockClient {
  const redis = new Redis(1, { ...options });
  redis.on("error", () => {});
  const locks = createLockClient(redis, { replyTimeout: 300 });
  onTestFinished(async () => {
    await locks.close({ grace: 0 });
    redis.disconnect();
  });
  return locks;
}

async function chargeTheCustomer(work: () => Promise<unknown>): Promise<void> {
  await work();
}

/** The name of the function above is in the stack of what the work rejects with. */
async function expectCaller(work: () => Promise<unknown>): Promise<Error> {
  const error = (await failure(chargeTheCustomer(work))) as Error;
  expect(error.stack).toContain(`${error.name}: ${error.message}`);
  expect(error.stack).toContain("chargeTheCustomer");
  return error;
}

const CALLS: [string, (lock: Lock) => Promise<unknown>][] = [
  ["tryLock", (lock) => lock.tryLock()],
  ["tryLock with a wait", (lock) => lock.tryLock(50)],
  ["lock", (lock) => lock.lock()],
  ["withLock", (lock) => lock.withLock(() => {})],
  ["inspect", (lock) => lock.inspect()],
  ["isLocked", (lock) => lock.isLocked()],
  ["forceUnlock", (lock) => lock.forceUnlock()],
];

describe("the stack of an error names the caller", () => {
  it.each(CALLS)("LockUnavailableError of %s", async (_, call) => {
    const lock = unreachable().lock(freshName());
    expect(await expectCaller(() => call(lock))).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  });

  it.each(CALLS.slice(0, 4))("LockUnavailableError of %s, of a command that failed", async (_, call) => {
    const lock = unreachable({ enableOfflineQueue: false }).lock(freshName());
    expect(await expectCaller(() => call(lock))).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  });

  it("LockUnavailableError of a multi-lock", async () => {
    const lock = unreachable().multiLock([freshName(), freshName()]);
    for (const call of [() => lock.tryLock(), () => lock.lock(), () => lock.withLock(() => {})])
      expect(await expectCaller(call)).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  });

  it("LockTimeoutError and ClientClosedError", async () => {
    const other = await parties.join();
    const { locks } = await parties.join();
    const name = freshName();
    await using held = await other.locks.lock(name).lock();
    expect(held.held).toBe(true);
    expect(await expectCaller(() => locks.lock(name).lock({ wait: 30 }))).toMatchObject({
      code: "LOCK_TIMEOUT",
    });
    const waiting = expectCaller(() => locks.lock(name).lock());
    await until(async () => (await other.locks.lock(name).inspect()).waiters?.length === 1);
    await locks.close();
    expect(await waiting).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await expectCaller(() => locks.lock(name).tryLock())).toMatchObject({ code: "CLIENT_CLOSED" });
  });

  it("NotReplicatedError", async () => {
    const { locks } = await parties.join({ client: { replicas: 1, replicaTimeout: 50 } });
    expect(await expectCaller(() => locks.lock(freshName()).lock())).toMatchObject({
      code: "LOCK_NOT_REPLICATED",
    });
  });

  it("LockLostError, of a loss that was noticed before", async () => {
    const { locks } = await parties.join();
    const lock = locks.lock(freshName());
    const lost = async () => {
      const lease = await leased(() => lock.lock({ lease: 300 }));
      await until(() => !lease.held);
      return lease;
    };
    const asserted = await lost();
    const error = await expectCaller(async () => asserted.assertHeld());
    expect(error).toBe(asserted.signal.reason);
    const [unlocked, extended] = [await lost(), await lost()];
    await expectCaller(() => unlocked.unlock());
    await expectCaller(() => extended.extend(1_000));
    await expectCaller(() => lock.withLock({ lease: 300 }, (lease) => until(() => !lease.held)));
  });

  it.each(["lock", "multiLock"] as const)(
    "LockLostError, of a loss that only the command finds: %s",
    async (kind) => {
      const { locks, redis } = await parties.join();
      const lost = async () => {
        const name = freshName();
        const lease = await (kind === "lock"
          ? locks.lock(name).lock()
          : locks.multiLock([name, `${name}2`]).lock());
        await redis.del(`holdfast:{${name}}`);
        return lease;
      };
      const [unlocked, extended] = [await lost(), await lost()];
      expect(await expectCaller(() => unlocked.unlock())).toBeInstanceOf(LockLostError);
      await expectCaller(() => extended.extend(1_000));
      await extended.unlock(); // its loss was thrown
    },
  );

  it.each([
    ["an Error", new Error("enough")],
    ["an error of this package", new LockUnavailableError("another", "enough")],
  ])("the reason of a signal is thrown unchanged: %s", async (_, reason) => {
    const other = await parties.join();
    const { locks } = await parties.join();
    const name = freshName();
    await using held = await other.locks.lock(name).lock();
    const { stack } = reason;
    const patience = new AbortController();
    const waiting = failure(locks.lock(name).lock({ signal: patience.signal }));
    patience.abort(reason);
    expect(await waiting).toBe(reason);
    expect([reason.stack, held.held]).toEqual([stack, true]);
  });
});
