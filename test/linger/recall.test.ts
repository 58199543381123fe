import type { Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import { Gate, holdAnswer } from "../contract/observe.ts";
import { onNodeRedis } from "../support/carrier.ts";
import type { Party } from "../support/fixture.ts";
import { listenersOf } from "../support/listeners.ts";
import { Stage, timedAwake } from "../support/stage.ts";
import { LINGERING, STAY_FRESH, STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";

// Another process wants a lock that is cached, or would be: the holder is recalled, and gives it up,
// at every moment of its own commands.

/** ms: less than `linger`, and than a re-check. */
const AT_ONCE = 500;

vi.spyOn(LingerLearner.prototype, "keeps").mockReturnValue(true);
const stage = new Stage({ near: { client: LINGERING } });

describe("a recall", () => {
  it("is sent by a caller of another process, which has the lock at once, also under fake timers", async () => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    await (await near.locks.lock(lock.name).lock()).unlock();
    const timers = ["setTimeout", "setInterval", "clearTimeout", "clearInterval"];
    // node-redis writes its commands with this one.
    const immediates = onNodeRedis ? [] : ["setImmediate", "clearImmediate"];
    vi.useFakeTimers({ toFake: [...timers, ...immediates] as ["setTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const [lease, waited] = await timedAwake(far.locks.lock(lock.name).lock());
    expect(waited).toBeLessThan(AT_ONCE);
    await lease.unlock();
  });

  it("is reported to listeners of the client that releases the lock", async () => {
    const { near, far, lock } = stage;
    const { name } = lock;
    await stage.warm(near);
    await (await near.locks.lock(name).lock()).unlock();
    const recalls: unknown[] = [];
    near.locks.on("recall", (event) => recalls.push(event));
    const [lease, waited] = await timedAwake(far.locks.lock(name).lock());
    expect(waited).toBeLessThan(AT_ONCE);
    expect(recalls).toMatchObject([
      { name, kind: "lock", idle: expect.any(Number), uses: expect.any(Number) },
    ]);
    await lease.unlock();
  });

  it("that is read before the answer to the acquire counts", async () => {
    const { near, far, lock } = stage;
    const { heard } = listenersOf(near.redis);
    await stage.warm(near);
    const answer = new Gate();
    const executed = holdAnswer(near.redis, answer);
    const asking = near.locks.lock(lock.name).lock();
    await executed;
    const [lease, waited] = await timedAwake(
      (async () => {
        const waiting = far.locks.lock(lock.name).lock();
        await until(() => heard.some((message) => message.startsWith("recall ")), { what: "a recall" });
        answer.open();
        await (await asking).unlock();
        return waiting;
      })(),
    );
    expect(waited).toBeLessThan(AT_ONCE);
    await lease.unlock();
  });

  it("that could not arrive before the answer to the acquire is made up for", async () => {
    const { near, far, proxy, lock } = stage;
    await stage.warm(near);
    const answer = new Gate();
    const executed = holdAnswer(near.redis, answer);
    const asking = near.locks.lock(lock.name).lock();
    await executed;
    proxy.cut("subscribers");
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    await until(async () => (await channels(near.locks.id)) > 0, { what: "a subscriber again" });
    answer.open();
    await (await asking).unlock();
    const [lease, waited] = await timedAwake(waiting);
    expect(waited).toBeLessThan(AT_ONCE);
    await lease.unlock();
  });

  it.each([
    "is answered",
    "is not answered yet",
    "was answered for a lease of its own, and the body is long",
  ])(
    "that was not sent, because a non-waiting caller stood first, is made up for, also if the acquire %s",
    async (what) => {
      const isLong = what.includes("long");
      const { near, far, lock } = stage;
      const { heard } = listenersOf(near.redis);
      await stage.warm(near);
      await warm(near, far);
      const answer = new Gate();
      const executed = holdAnswer(near.redis, answer);
      // Such a one is neither claimed nor renewed.
      const asking = near.locks.lock(lock.name).lock(isLong ? { lease: STAY_WINDOW - 500 } : {});
      await executed;
      if (what !== "is not answered yet") {
        answer.open();
        await asking;
      }
      // As a tryLock() of a third process, which leaves its place when it is told that somebody is inside.
      const place = "0 3000 0 holdfast:client:elsewhere:1:0123456789abcdef:00000001abcdefghijklm";
      await far.redis.zadd(lock.keys.queue, `${Date.now()}000`, place);
      const hold = await lock.holder();
      const nonce = "elsewhere:1:0123456789abcdef.0123456789abcdef";
      await far.redis.publish(hold.slice(0, -22), `recall ${hold} ${nonce} ${lock.keys.lock}`);
      const waiting = far.locks.lock(lock.name).lock();
      await lock.queued(2);
      await until(() => heard.some((message) => message.includes(nonce)), { what: "the question" });
      await far.redis.zrem(lock.keys.queue, place);
      const left = performance.now() + (isLong ? STAY_FRESH : 0);
      await until(() => performance.now() > left);
      answer.open();
      await (await asking).unlock();
      const [lease, waited] = await timedAwake(waiting);
      expect(waited).toBeLessThan(AT_ONCE);
      await lease.unlock();
    },
  );

  it("ends a cached lock before the next caller of its own process", async () => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    const [mine, theirs] = [near.locks.lock(lock.name), far.locks.lock(lock.name)];
    for (let i = 0; i < 20; i++) {
      await (await mine.lock()).unlock();
      expect(await lock.holder()).not.toBe("");
      const [lease, waited] = await timedAwake(theirs.lock());
      expect(waited).toBeLessThan(AT_ONCE);
      expect(await mine.tryLock()).toBeNull();
      await lease.unlock();
    }
  });

  it("is answered together with others that were read with it, in one write", async () => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    const names = Array.from({ length: 8 }, (_, i) => `${lock.name} ${i}`);
    for (const name of names) await (await near.locks.lock(name).lock()).unlock();
    expect(near.locks.stats().kept).toBeGreaterThanOrEqual(8);
    const write = vi.spyOn(streamOf(near), "_write");
    const writev = vi.spyOn(streamOf(near), "_writev");
    // They are asked for in one packet, so that the recalls come in one.
    streamOf(far).cork();
    const waiting = names.map((name) => far.locks.lock(name).lock());
    streamOf(far).uncork();
    const leases = await Promise.all(waiting);
    expect(write.mock.calls.length + writev.mock.calls.length).toBeLessThanOrEqual(4);
    for (const lease of leases) await lease.unlock();
  });
});

it("a client releases the lock before listeners of the event run, which may block the event loop", async () => {
  const { near, far, lock } = stage;
  await stage.warm(near);
  await (await near.locks.lock(lock.name).lock()).unlock();
  const corked: number[] = [];
  near.locks.on("recall", () => void corked.push(streamOf(near).writableCorked));
  await (await far.locks.lock(lock.name).lock()).unlock();
  expect(corked).toEqual([0]);
});

const streamOf = ({ redis }: Party): Required<Socket> =>
  (redis as unknown as { stream: Required<Socket> }).stream;

const channels = async (id: string): Promise<number> => {
  const channel = `holdfast:client:${id}`;
  return Number((await stage.far.redis.pubsub("NUMSUB", channel))[1]);
};
