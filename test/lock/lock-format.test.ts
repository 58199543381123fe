import { afterAll, afterEach, describe, expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// What stands in the key of a lock: written by another version of this package, by a later one of
// the same format, or by something else.

const parties = new Parties();
afterEach(parties.close);
afterAll(parties.close);

const failure = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

/** As a version with format 2 may write it. */
const FOREIGN = "20 whatever that version likes";

describe.each(["lock", "fairLock"] as const)("%s, held in format 2", (kind) => {
  it("rejects with LOCK_FORMAT and changes nothing", async () => {
    const { redis, locks } = await parties.join();
    const name = freshName();
    const { keys } = new Onlooker(redis, name);
    await redis.set(keys.lock, FOREIGN, "PX", 60_000);
    const lock = locks[kind](name);
    const refused = { code: "LOCK_FORMAT", name: "LockFormatError", lockName: name, found: 2, known: 1 };
    expect(await failure(lock.tryLock())).toMatchObject(refused);
    // Before the call: the machine may stand still between the two.
    const asked = performance.now();
    expect(await failure(lock.lock({ wait: 300 }))).toMatchObject(refused);
    expect(performance.now() - asked).toBeGreaterThan(250);
    expect(await failure(lock.inspect())).toMatchObject(refused);
    expect(await failure(lock.isLocked())).toMatchObject(refused);
    expect(await failure(lock.recall())).toMatchObject(refused);
    expect(await failure(lock.forceUnlock())).toMatchObject(refused);
    expect(await redis.get(keys.lock)).toBe(FOREIGN);
    expect(await redis.exists(keys.queue, keys.clients)).toBe(0);
    await redis.del(keys.lock);
  });

  it("is retried during the wait, and acquired when the foreign value is gone", async () => {
    const { redis, locks } = await parties.join();
    const name = freshName();
    const { keys } = new Onlooker(redis, name);
    await redis.set(keys.lock, FOREIGN);
    let told = 0;
    locks.on("wait", () => told++);
    let entered = 0;
    const enter = () => locks[kind](name).withLock({ wait: 30_000 }, () => void entered++);
    const waiting = [enter(), enter(), enter()];
    await until(() => told === 3, { what: "all to be told that they wait" });
    expect(entered).toBe(0);
    await redis.del(keys.lock);
    await Promise.all(waiting);
    expect(entered).toBe(3);
  });
});

it("a label after the hold is ignored: the holder is shown, and the lock can be force-released", async () => {
  const { redis, locks } = await parties.join();
  const name = freshName();
  const { keys } = new Onlooker(redis, name);
  const holder = "holdfast:client:ops/host:7:0123456789abcdef:0000000a0123456789abc";
  await redis.set(keys.lock, `11 1800000000000007 1800000000000001 ${holder} nightly`, "PX", 60_000);
  expect(await locks.lock(name).tryLock()).toBe(null);
  expect(await locks.lock(name).inspect()).toMatchObject({
    holder: { id: "ops/host:7:0123456789abcdef:10", host: "host", pid: 7, label: "nightly" },
    token: 1_800_000_000_000_007,
  });
  expect(await locks.lock(name).forceUnlock()).toBe(true);
  expect(await locks.lock(name).isLocked()).toBe(false);
  await redis.del(keys.clock); // the token was one of the future
});

it.each(["", "hello", "1", "10 1", "host:1:abc:0001 1 1 c", "2", "100 1 1 1"])(
  "a value that is no lock of any format is refused and left as it is: '%s'",
  async (text) => {
    const { redis, locks } = await parties.join();
    const name = freshName();
    const { keys } = new Onlooker(redis, name);
    await redis.set(keys.lock, text, "PX", 60_000);
    const wrong = { code: "LOCK_UNAVAILABLE", cause: { message: expect.stringContaining("WRONGTYPE") } };
    expect(await failure(locks.lock(name).tryLock())).toMatchObject(wrong);
    expect(await failure(locks.fairLock(name).lock({ wait: 50 }))).toMatchObject(wrong);
    expect(await failure(locks.lock(name).forceUnlock())).toMatchObject(wrong);
    expect(await redis.get(keys.lock)).toBe(text);
    await redis.del(keys.lock);
  },
);

it.each(["my app:", "é:", "{ü}:", "日本 語:", "a%20b:"])(
  "ids with the prefix '%s' are printable ASCII, and the lock is handed over by message",
  async (keyPrefix) => {
    const [near, far] = [
      await parties.join({ redis: { keyPrefix } }),
      await parties.join({ redis: { keyPrefix } }),
    ];
    const name = freshName();
    const lock = new Onlooker(far.redis, name);
    for (let round = 0; round < 3; round++) {
      const held = await far.locks.lock(name).lock();
      expect(await lock.holder()).toMatch(/^[!-~]+:[0-9a-z]{21}$/);
      const waiting = near.locks.lock(name).lock();
      await lock.queued(1);
      expect((await near.locks.lock(name).inspect()).holder?.id).toMatch(
        new RegExp(`^${far.locks.id}:\\d+$`),
      );
      await held.unlock();
      const [lease, waited] = await timedAwake(waiting);
      await lease.unlock();
      if (round > 0) expect(waited).toBeLessThan(1_100); // a look would come later
    }
  },
);
