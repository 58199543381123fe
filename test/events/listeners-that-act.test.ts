import { Redis } from "ioredis";
import { afterAll, afterEach, expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { block } from "../support/block.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { until } from "../support/until.ts";

// Listeners run in the middle of what they are told of: they may abort a caller, or call again.

const parties = new Parties();

afterEach(() => parties.close());
afterAll(parties.close);

it("a caller that aborts when a listener reports its wait for its own client leaves no place behind", async () => {
  const { locks, redis } = await parties.join();
  const name = freshName();
  const heard = (): void => {};
  process.on("warning", heard); // of the deadlock
  onTestFinished(() => void process.off("warning", heard));
  const self = new AbortController();
  let isSlow = true;
  locks.on("wait", ({ heldBy }) => {
    if (heldBy === "this client") self.abort(new Error("a deadlock of our own"));
    else if (isSlow) {
      // The answer that queues it is read when two of its leases are over.
      isSlow = false;
      setImmediate(() => block(60));
    }
  });
  const held = await locks.lock(name).lock({ lease: 60_000 });
  const fair = locks.fairLock(name);
  const first = fair.lock({ lease: 10, signal: self.signal }).catch((error: Error) => error.message);
  await until(() => self.signal.aborted, { what: "the caller to be told" });
  expect(await first).toBe("a deadlock of our own");
  const lock = new Onlooker(redis, name);
  const second = fair.lock();
  await lock.queued(1);
  await lock.lookedAt();
  await held.unlock();
  await (await second).unlock();
});

it("a caller that calls again when it is refused leaves no unowned lock behind", async () => {
  const redis = new Redis(testUrl());
  const [name, user] = [freshName(), freshName("user").replaceAll(":", "-")];
  await redis.call("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-subscribe");
  const theirs = new Redis(testUrl(), { username: user, password: "secret" });
  const locks = createLockClient(theirs);
  locks.on("error", () => {});
  onTestFinished(async () => {
    await locks.close({ grace: 0 });
    theirs.disconnect();
    await redis.call("ACL", "DELUSER", user);
    redis.disconnect();
  });
  const lock = redissonLock(locks, name);
  const again: Promise<unknown>[] = [];
  locks.on("giveup", () => {
    if (again.length > 0) return;
    again.push(lock.lock({ wait: 2_000 }).then((lease) => lease.unlock()));
  });
  const free = () => void redis.del(name); // by the time of the refusal
  // Free too early, it is taken before it is refused: then once more.
  const error = await until(async () => {
    await redis.hset(name, "another:1", 1);
    await redis.pexpire(name, 60_000);
    locks.off("wait", free).once("wait", free);
    return lock.lock().then(
      (lease) => lease.unlock(),
      (refused: unknown) => refused,
    );
  });
  expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  await Promise.allSettled(again);
  await until(async () => (await redis.exists(name)) === 0, {
    timeout: 10_000,
    what: "the lock to be nobody's",
  });
  await (await lock.lock()).unlock();
});

it("a caller that a listener starts when its lease ends has the lock next", async () => {
  const { locks } = await parties.join();
  const lock = locks.lock(freshName());
  let third: ReturnType<typeof lock.tryLock> | undefined;
  locks.on("acquire", () => {
    if (third) return;
    block(300);
    third = lock.tryLock();
  });
  const [first, second] = await Promise.all([lock.tryLock({ lease: 200 }), lock.tryLock()]);
  expect([first?.held, second]).toEqual([false, null]);
  const lease = await third;
  expect(lease?.held).toBe(true);
  await lease?.unlock();
});
