import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { redissonLock } from "../../src/redisson.ts";
import { channelOf } from "../contract/java.ts";
import { clientOf, Forger, grant, guesses } from "../support/forger.ts";
import { turnsUntilHeard } from "../support/heard.ts";
import { Stage, timed, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";

// A user of the same Redis that may only publish and list channels gets no lock, ends none, delays
// none, and makes no client send anything.

vi.mock("../../src/defaults.ts", async (all) => (await import("../support/patience.ts")).patient(all));
const stage = new Stage();

/** Has `far` hold the lock and `near` wait for it, with a lease that is long enough to be worth forging. */
async function contended() {
  const { near, far, lock } = stage;
  await warm(near, far);
  const forger = await Forger.start(far.redis);
  const held = await far.locks.lock(lock.name).lock();
  const waiting = near.locks.lock(lock.name).lock({ lease: 60_000 });
  await lock.queued(1);
  const channels = await forger.channels();
  const channel = channels.find((one) => clientOf(one) === near.locks.id) ?? "";
  return { forger, held, waiting, channels, channel };
}

/** The token of the owner by what Redis has written down. */
const tokenOf = async (): Promise<number> =>
  Number((await stage.far.redis.get(stage.lock.keys.lock))?.split(" ")[1]);

describe("a forged grant", () => {
  it("gives no caller a lock that another one holds", async () => {
    const { lock } = stage;
    const { forger, held, waiting, channels } = await contended();
    for (const channel of channels) {
      const forged = guesses(clientOf(channel)).map((hold) => grant(lock.keys.lock, hold));
      expect(await forger.publish(channel, forged)).toBe(forged.length);
    }
    let isReleased = false;
    const order = waiting.then(() => isReleased);
    await lock.lookedAt(); // a re-check of the waiter, which has read all of it by then
    isReleased = true;
    await held.unlock();
    const [lease, waited] = await timedAwake(waiting);
    expect([await order, lease.token]).toEqual([true, await tokenOf()]);
    expect(waited).toBeLessThan(350); // by message: nothing was delayed
    await lease.unlock();
  });

  it("of a hold whose id was read from Redis counts only with numbers that a script would write", async () => {
    const { lock } = stage;
    const { forger, held, waiting, channel } = await contended();
    const [hold = ""] = await lock.waiters();
    const key = lock.keys.lock;
    const forged = ["NaN", "x", "", "Infinity", "-1", "0", "1.5", "1e300"].flatMap((bad) => [
      grant(key, hold, { token: bad }),
      grant(key, hold, { at: bad }),
      grant(key, hold, { ttl: bad }),
    ]);
    forged.push(grant(key, hold, { ttl: "60001" })); // more than was asked for
    await forger.publish(channel, forged);
    let isReleased = false;
    const order = waiting.then(() => isReleased);
    await lock.lookedAt();
    expect(await lock.waiters()).toEqual([hold]); // it was not even left
    isReleased = true;
    await held.unlock();
    expect([await order, (await waiting).token]).toEqual([true, await tokenOf()]);
    await (await waiting).unlock();
  });

  it("for no waiter makes no client send a command", async () => {
    const { near, lock, proxy } = stage;
    const { forger, held, waiting, channel } = await contended();
    await lock.lookedAt(); // the next look is 1.1 s away
    proxy.record();
    const forged = Array.from({ length: 5_000 }, (_, i) =>
      grant(`holdfast:{nobody:${i}}`, i % 2 ? `nobody:${i}` : `${near.locks.id}:${i}`),
    );
    expect(await forger.publish(channel, forged)).toBe(5_000);
    await held.unlock();
    const lease = await waiting; // behind all of it
    const sent = proxy.commands.filter(({ command }) => command.some((word) => word.includes("nobody")));
    expect(sent).toEqual([]);
    expect(proxy.commands.length).toBeLessThan(10); // a claim, perhaps a look
    await lease.unlock();
  });
});

describe("a forged revocation", () => {
  it("ends no lease", async () => {
    const { near, lock } = stage;
    const { forger, held, waiting, channel } = await contended();
    await held.unlock();
    const lease = await waiting;
    const lost: unknown[] = [];
    near.locks.on("lost", (event) => lost.push(event));
    const forged = guesses(near.locks.id).map((hold) => `revoked ${hold} ${lock.keys.lock}`);
    await forger.publish(channel, forged);
    // A grant that is read behind them.
    const other = `${lock.name}:other`;
    const [first] = await turnsUntilHeard(stage.far, near, other);
    expect(first).toBeDefined();
    expect([lease.held, lost]).toEqual([true, []]);
    await lease.unlock();
  });
});

describe("a forged probe", () => {
  it.each(["probe Infinity", "probe 1e300", "probe x"])(
    "proves nothing: a half-open subscriber is found anyway: %s",
    async (message) => {
      const { near, far, lock, proxy } = stage;
      await stage.warm(near);
      const forger = await Forger.start(far.redis);
      const [channel = ""] = await forger.channels(`holdfast:client:${near.locks.id}*`);
      expect(await forger.publish(channel, [message])).toBe(1);
      await turnsUntilHeard(far, near, lock.name); // it has read that
      proxy.freeze("subscribers"); // this one only
      const waits = await turnsUntilHeard(far, near, lock.name);
      expect(waits.length).toBeLessThanOrEqual(4);
    },
    40_000,
  );
});

describe("a forged wake-up of redissonLock", () => {
  it("costs at most one try in 50 ms; after a flood of them the lock is acquired at once", async ({
    annotate,
  }) => {
    const { near, far, lock, proxy } = stage;
    const forger = await Forger.start(far.redis);
    const held = await redissonLock(far.locks, lock.name).lock();
    const waiting = redissonLock(near.locks, lock.name).lock();
    const channel = channelOf(lock.name);
    await until(async () => (await forger.channels(channel)).length > 0, { what: "the waiter to listen" });
    await near.redis.ping();
    proxy.record();
    const [, ms] = await timed(forger.flood(channel, 1_500));
    const tries = proxy.commands.length;
    await annotate(`${tries} tries in ${ms} ms`);
    expect(tries).toBeGreaterThan(0);
    expect(tries).toBeLessThan(ms / 50 + 4);
    const flood = forger.flood(channel, 500);
    const [lease, waited] = await timedAwake(held.unlock().then(() => waiting));
    await annotate(`had after ${waited} ms`);
    expect(waited).toBeLessThan(350);
    await lease.unlock();
    await flood;
  });

  it("that comes alone, as an honest one does after a try overtook it, does not delay a later release", async () => {
    const { near, far, lock } = stage;
    const channel = channelOf(lock.name);
    const waits: number[] = [];
    for (let round = 0; round < 20; round++) {
      const held = await redissonLock(far.locks, lock.name).lock();
      const waiting = redissonLock(near.locks, lock.name).lock();
      await until(async () => (await far.redis.pubsub("NUMSUB", channel))[1] === 1);
      await near.redis.ping(); // the try behind the subscription is answered
      await far.redis.publish(channel, "0");
      await delay(5); // the try behind the message is answered, too
      const [lease, waited] = await timedAwake(held.unlock().then(() => waiting));
      waits.push(waited);
      await lease.unlock();
    }
    // Half of them at the least: a busy machine is slow now and then.
    expect(waits.sort((one, other) => one - other)[10]).toBeLessThan(30);
  });
});
