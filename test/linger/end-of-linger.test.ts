import { setImmediate as turn } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import type { LockClientOptions } from "../../src/index.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { OwnServer } from "../support/own-server.ts";
import { timedAwake } from "../support/stage.ts";
import { keep, LINGERING, STAY_FRESH } from "../support/stays.ts";
import { until } from "../support/until.ts";

// How the time of a kept lock ends where something else happens than a recall.

const own = new OwnServer();
const join = (client: LockClientOptions = LINGERING): Promise<Party> =>
  own.parties.join({ url: own.url, client });

it("a lock that its caller retook at once, and that is cached only then, stays, and ends by itself", async () => {
  const keeper = await join();
  const { redis, locks } = keeper;
  await keep(keeper, freshName());
  const keeps = vi.spyOn(LingerLearner.prototype, "keeps");
  onTestFinished(() => keeps.mockRestore());
  const isKept: boolean[] = [];
  locks.on("acquire", (event) => isKept.push(event.kept));
  const lock = await until(async () => {
    const name = freshName();
    const mine = locks.lock(name);
    keeps.mockReturnValue(false);
    await (await mine.lock()).unlock();
    const again = await mine.lock();
    keeps.mockReturnValue(true);
    await again.unlock();
    // Else this machine stood still, and the lock went to Redis in between.
    return isKept.splice(0).at(-1) && new Onlooker(redis, name);
  });
  await turn();
  expect(await lock.holder()).toContain(locks.id);
  await until(() => locks.stats().kept === 0, { timeout: 10_000, what: "linger to be over" });
});

it("a lock is acquired again without a command also if the grant window is long", async () => {
  const keeper = await join({ grantWindow: 10_000, linger: 1_000 });
  const isKept: boolean[] = [];
  keeper.locks.on("acquire", (event) => isKept.push(event.kept));
  await until(
    async () => {
      const name = freshName();
      await keep(keeper, name);
      await (await keeper.locks.lock(name).lock()).unlock();
      return isKept.includes(true);
    },
    { timeout: 10_000 },
  );
});

it("a call that finds the lock, and a silent Redis, has the time of a first command", async () => {
  const keeper = await join();
  const name = freshName();
  await keep(keeper, name);
  const { redis } = await join();
  await redis.client("PAUSE", 2_500);
  // By now whatever Redis has said is too old for a turn without asking.
  const at = performance.now();
  await until(() => performance.now() > at + STAY_FRESH);
  const [error, waited] = await timedAwake(
    keeper.locks
      .lock(name)
      .tryLock()
      .catch((failure: unknown) => failure),
  );
  expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(waited).toBeLessThan(900);
});

it("a listener of the recall may call: it queues, once, after the caller that wants the lock", async () => {
  const [keeper, other] = [await join(), await join({})];
  const lock = new Onlooker(other.redis, freshName());
  await keep(keeper, lock.name);
  const called = new Promise<{ unlock(): Promise<void> }>((resolve) => {
    keeper.locks.once("recall", () => resolve(keeper.locks.lock(lock.name).lock()));
  });
  const theirs = await other.locks.lock(lock.name).lock();
  await lock.queued(1);
  // Whatever it has sent was executed before.
  await keeper.redis.ping();
  expect(await other.redis.zcard(lock.keys.queue)).toBe(1);
  await theirs.unlock();
  await (await called).unlock();
});

it("a lost connection is no recall, and a lock that was never idle is not recalled", async () => {
  const [keeper, other] = [await join(), await join({})];
  const { locks, redis } = keeper;
  const names = Array.from({ length: 3 }, () => freshName());
  for (const name of names) await keep(keeper, name);
  redis.disconnect(true);
  await until(() => locks.stats().kept === 0);
  expect(locks.stats()).toMatchObject({ recalled: 0, recalledUnused: 0 });
  await keep(keeper, freshName());
  const keeps = vi.spyOn(LingerLearner.prototype, "keeps").mockReturnValue(false);
  onTestFinished(() => keeps.mockRestore());
  for (const name of names) {
    const lease = await locks.lock(name).lock();
    const theirs = other.locks.lock(name).lock();
    await new Onlooker(redis, name).queued(1);
    await lease.unlock();
    await (await theirs).unlock();
  }
  expect(locks.stats()).toMatchObject({ recalled: 0, recalledUnused: 0 });
});
