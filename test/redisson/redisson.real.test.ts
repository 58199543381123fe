// On a real Redis; in virtual time: test/world/directed/other-kinds.test.ts,
// test/world/directed/redisson.test.ts.

import { beforeEach, describe, expect, it, vi } from "vitest";
import { redissonLock } from "../../src/redisson.ts";
import { redissonLua as lua } from "../../src/wires/redisson-lua.generated.ts";
import { channelOf, counterOf, JavaThread } from "../contract/java.ts";
import { failure, Gate, lossOf } from "../contract/observe.ts";
import type { Party } from "../support/fixture.ts";
import { linkOf } from "../support/link.ts";
import { lockOf } from "../support/permit.ts";
import { failScript, holdReply, onScript } from "../support/scripts-sent.ts";
import { Stage, timed } from "../support/stage.ts";
import { type Match, named, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Redisson's protocol, every command executed twice; and what Redisson itself does not tell: a lock
// that is lost.

const stage = new Stage({ near: { client: { leaseTime: 600 } } });
let proxy: TcpProxy;
let near: Party;
let far: Party;
let java: JavaThread;
let name: string;
beforeEach(() => {
  ({ proxy, near, far } = stage);
  java = new JavaThread(far.redis);
  name = stage.lock.name;
});

const script = (which: keyof typeof lua): Match => {
  const { sha } = lua[which];
  return ([command, first]) => command === "evalsha" && first === sha;
};
const holds = (): Promise<string[]> => far.redis.hvals(name);

describe.each(["redissonLock", "redissonFencedLock"] as const)(
  "%s: the reply is lost and the command is sent again",
  (kind) => {
    it("acquire: it counts once and takes one token", async () => {
      const dropped = proxy.dropReply(script("acquire"));
      // A lease that is over before the wait would let it in after all.
      const lease = await lockOf(near.locks, kind, name).lock({ lease: 20_000, wait: 2_000 });
      await dropped;
      expect([await holds(), await far.redis.get(counterOf(name))]).toEqual([
        ["1"],
        kind === "redissonFencedLock" ? `${lease.token}` : null,
      ]);
      expect("token" in lease ? lease.token : null).toBe(kind === "redissonFencedLock" ? 1 : null);
      await lease.unlock();
      expect(await java.tryLock(name)).toBe(null);
      await java.unlock(name);
    });

    it("release: the latch answers, also if another caller has the lock by then", async () => {
      for (const isTaken of [false, true]) {
        const lease = await lockOf(near.locks, kind, name).lock();
        const dropped = proxy.dropReply(script("release"));
        if (isTaken) proxy.refuse(true); // no reconnect before Java has it
        const unlocked = lease.unlock();
        await dropped;
        if (isTaken) {
          expect(await java.tryLock(name)).toBe(null);
          proxy.refuse(false);
        }
        await unlocked; // rejects with LOCK_LOST without the latch
        if (isTaken) expect(await java.unlock(name)).toBe(1);
        expect(await holds()).toEqual([]);
      }
    });

    it("recount, of an entry and of an exit: Java sees the right count", async () => {
      await near.locks.scope(async () => {
        const outer = await lockOf(near.locks, kind, name).lock({ lease: 20_000 });
        const entering = proxy.dropReply(script("recount"));
        const inner = await lockOf(near.locks, kind, name).lock();
        await entering;
        expect([await holds(), inner.token]).toEqual([["2"], outer.token]);
        const leaving = proxy.dropReply(script("recount"));
        await inner.unlock();
        await leaving;
        expect(await holds()).toEqual(["1"]);
        await outer.unlock();
      });
      expect(await holds()).toEqual([]);
    });

    it("a renewal: the TTL is extended, nothing else", async () => {
      const lease = await lockOf(near.locks, kind, name).lock({ lease: 5_000 });
      const dropped = proxy.dropReply(script("renew"));
      await Promise.all([lease.extend(60_000), dropped]);
      expect([await holds(), (await far.redis.pttl(name)) > 50_000]).toEqual([["1"], true]);
      await lease.unlock();
    });
  },
);

describe("a count that Redis did not confirm", () => {
  it("is not handed off: the next caller of the process has a hold of its own", async () => {
    const lock = redissonLock(near.locks, name);
    let ask = (): void => {};
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    const counts = asked.then(() => lock.withLock({ lease: 20_000 }, holds)); // outside of the scope
    await near.locks.scope(async () => {
      const outer = await lock.lock({ lease: 20_000 });
      const inner = await lock.lock();
      ask();
      const failed = failScript(near.redis, script("recount"));
      await expect(inner.unlock()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
      await failed;
      await outer.unlock();
    });
    expect(await counts).toEqual(["1"]);
  });
});

describe("waiting", () => {
  it("a lock that became free without a message is tried for a caller that would not wait", async () => {
    const held = await redissonLock(far.locks, name).lock();
    const parked = redissonLock(near.locks, name).lock();
    await until(async () => (await far.redis.pubsub("NUMSUB", channelOf(name)))[1] === 1);
    await near.redis.ping(); // its try behind the subscription is answered
    await far.redis.del(name);
    expect(await redissonLock(near.locks, name).tryLock()).toBeNull();
    const [lease, waited] = await timed(parked);
    expect([lease.held, waited < 3_000]).toEqual([true, true]); // the lease of the lost hold is 30 s
    await lease.unlock();
    await held.unlock().catch(() => {});
  });

  it("a caller that would not wait does not have the lock tried right after a release, ahead of earlier callers", async () => {
    const { locks } = await stage.join({ url: proxy.url, client: { localHandoffs: 0 } });
    const [mine, theirs] = [redissonLock(locks, name), redissonLock(far.locks, name)];
    let lease = await mine.lock();
    let [turns, isOver] = [0, false];
    const others = (async () => {
      for (; !isOver; turns++) await theirs.withLock(() => {});
    })();
    for (let round = 0; round < 10; round++) {
      const next = mine.lock();
      await heard(2);
      const unlocked = lease.unlock();
      const tried = mine.tryLock();
      await unlocked;
      lease = await next;
      expect(await tried).toBeNull();
    }
    expect(turns).toBeGreaterThan(0); // a waiter that is woken comes first now and then; else never
    isOver = true;
    await lease.unlock();
    await others;
  });

  it("a lost message of that release delays the try only briefly", async () => {
    const { locks } = await stage.join({ url: proxy.url, client: { localHandoffs: 0 } });
    const mine = redissonLock(locks, name);
    const lease = await mine.lock();
    const next = mine.lock();
    await heard(1);
    for (let i = 0; i < 5; i++) await near.redis.ping(); // the acknowledgement is read
    proxy.partition("subscribers");
    const unlocked = lease.unlock();
    expect(await mine.tryLock()).toBeNull(); // the one in front of it has it
    await unlocked;
    await (await next).unlock();
  });

  /** Has the n-th try of `near` executed, and its answer read when the gate opens. */
  function holdAnswer(n: number): { executed: Promise<void>; read: Gate } {
    const [executed, read] = [new Gate(), new Gate()];
    let tries = 0;
    onScript(near.redis, (script, send) => {
      if (script.args[0] === lua.acquire.sha && ++tries === n)
        holdReply(script, () => {
          executed.open();
          return read.passed;
        });
      send();
    });
    return { executed: executed.passed, read };
  }

  const heard = (count: number) =>
    until(async () => String(await far.redis.pubsub("NUMSUB", channelOf(name))).endsWith(`,${count}`));

  it("a try that was sent before SUBSCRIBE was acknowledged, and answered after it, is not the last one", async () => {
    const held = await redissonLock(far.locks, name).lock();
    const stalled = proxy.stall(named("subscribe"));
    const { executed, read } = holdAnswer(2);
    const waiting = redissonLock(near.locks, name).lock();
    await stalled;
    await executed;
    await held.unlock(); // nobody is subscribed yet
    proxy.thaw();
    await heard(1);
    for (let i = 0; i < 5; i++) await near.redis.ping(); // the acknowledgement is read
    read.open();
    const [lease, waited] = await timed(waiting);
    expect(waited).toBeLessThan(3_000); // else at the end of the lease that was given back, 30 s
    await lease.unlock();
  });

  it("a try that was sent before the subscriber was lost, and answered when it is back, is not the last one either", async () => {
    const held = await redissonLock(far.locks, name).lock();
    const { executed, read } = holdAnswer(3);
    const waiting = redissonLock(near.locks, name).lock();
    await heard(1);
    await near.redis.ping(); // the second try is answered
    await far.redis.publish(channelOf(name), "0");
    await executed;
    proxy.cut("subscribers");
    await heard(0);
    await held.unlock(); // nobody hears it
    await heard(1);
    for (let i = 0; i < 5; i++) await near.redis.ping();
    read.open();
    const [lease, waited] = await timed(waiting);
    expect(waited).toBeLessThan(3_000);
    await lease.unlock();
  });

  it("a release that finds nothing publishes nothing: the waiters of the process are still woken", async () => {
    const { locks } = await stage.join({ client: { localHandoffs: 0 } });
    const lock = redissonLock(locks, name);
    const lease = await lock.lock();
    const next = lock.lock();
    await until(async () => String(await far.redis.pubsub("NUMSUB", channelOf(name))).endsWith(",1"));
    await far.redis.del(name);
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    const [again, waited] = await timed(next);
    expect(waited).toBeLessThan(500); // else after 1.5 s
    await again.unlock();
  });

  it("a SUBSCRIBE that fails at once is not retried in a storm, though the tries in between are answered", async () => {
    const times: number[] = [];
    const { redis, locks } = await stage.join({ url: stage.server.url });
    locks.on("error", () => {}); // NO_MESSAGES
    const link = linkOf(redis);
    const listen = link.listen.bind(link);
    vi.spyOn(link, "listen").mockImplementation((...args) => {
      const listener = listen(...args);
      vi.spyOn(listener, "subscribe").mockImplementation(() => {
        times.push(performance.now());
        return Promise.reject(new Error("ERR invalid request"));
      });
      return listener;
    });
    const held = await redissonLock(far.locks, name).lock();
    const waiting = redissonLock(locks, name).lock();
    await until(() => times.length === 7);
    // after 100, 200, 400, 800, 1 600 ms; a storm: 600
    expect((times[6] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1_200);
    await held.unlock();
    await (await waiting).unlock();
  });
});

describe.each(["redissonLock", "redissonFencedLock"] as const)("%s: a loss is reported", (kind) => {
  it.each(["gone", "taken"] as const)(
    "by the signal, when Java has used forceUnlock (%s)",
    async (reason) => {
      const lease = await lockOf(near.locks, kind, name).lock();
      const { signal } = lease;
      // Sent together: a renewal between them would find it gone.
      const taking = [far.redis.del(name), ...(reason === "taken" ? [java.tryLock(name)] : [])];
      expect(await Promise.all(taking)).toEqual(reason === "taken" ? [1, null] : [1]);
      expect([await lossOf(signal), lease.held]).toEqual([reason, false]);
      await expect(lease.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason });
      expect(await java.unlock(name)).toBe(reason === "taken" ? 1 : null);
    },
  );

  it("by its own deadline, before Redis admits Java, if Redis cannot be reached", async () => {
    near.locks.on("error", () => {}); // the failed renewals
    const lease = await lockOf(near.locks, kind, name).lock();
    const { signal } = lease;
    proxy.refuse(true);
    near.redis.disconnect(true);
    await until(async () => (await java.tryLock(name)) === null, { timeout: 5_000 });
    expect([lease.held, signal.aborted]).toEqual([false, true]);
    expect(await lossOf(signal)).toBe("expired");
    await expect(lease.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    proxy.refuse(false);
    expect(await java.unlock(name)).toBe(1);
  });
});
