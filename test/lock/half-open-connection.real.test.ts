// On a real Redis; in virtual time: test/world/directed/{half-open,connection-failures}.test.ts.

import { describe, expect, it } from "vitest";
import { turnsUntilHeard } from "../support/heard.ts";
import { listenersOf } from "../support/listeners.ts";
import { lockOf } from "../support/permit.ts";
import { Stage, timed } from "../support/stage.ts";
import { named } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Connections that stay open while nothing passes, and a server that stands still. A holder that
// hears nothing knows by its own clock when its lease is over. Keys end by the server's clock,
// which is this machine's too.

const LEASE = 3_000;
const stage = new Stage({ near: { client: { leaseTime: LEASE } } });

describe("a holder that receives nothing", () => {
  const silences: [string, { begin(): void; end(): void }][] = [
    ["a server that stands still", { begin: () => stage.server.suspend(), end: () => stage.server.resume() }],
    [
      "a half-open connection",
      { begin: () => stage.proxy.freeze("commands"), end: () => stage.proxy.thaw() },
    ],
  ];

  it.for(silences)(
    "from %s: its signal fires at its deadline, before the key can end",
    async ([, silence], { annotate }) => {
      const { near, far, lock } = stage;
      const errors: unknown[] = [];
      near.locks.on("error", (error) => errors.push(error));
      const lease = await near.locks.lock(lock.name).lock();
      const { signal } = lease;
      const waiting = far.locks
        .lock(lock.name)
        .lock()
        .then((next) => ({ next, wasTold: signal.aborted, wasHeld: lease.held }));
      await lock.queued(1);
      const deadline = Date.now() + lease.remaining;
      const end = Number(await far.redis.call("PEXPIRETIME", lock.keys.lock));
      silence.begin();
      const fired = await new Promise<number>((at) => signal.addEventListener("abort", () => at(Date.now())));
      await annotate(`deadline ${end - deadline} ms, signal ${end - fired} ms before the key's end`);
      expect(deadline).toBeLessThan(end);
      // a renewal would be awaited for 3 s more
      expect([fired >= deadline - 1, fired < deadline + 1_000]).toEqual([true, true]);
      expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(errors[0]).toMatchObject({ code: "LOCK_UNAVAILABLE" }); // its renewals
      if (silence === silences[0]?.[1]) silence.end();
      const [{ next, ...then }, waited] = await timed(waiting);
      await annotate(`the next one ${waited} ms later`);
      expect(then).toEqual({ wasTold: true, wasHeld: false });
      silence.end(); // its late renewals and its `leave` harm nobody
      await near.redis.ping();
      expect([next.held, await lock.holder()]).toEqual([true, expect.stringContaining(far.locks.id)]);
      await expect(lease.unlock()).rejects.toMatchObject({ reason: "expired" });
      await next.unlock();
    },
  );

  it("for less than its lease: nothing is lost", async () => {
    const { near, lock, proxy } = stage;
    const lease = await near.locks.lock(lock.name).lock();
    near.locks.on("error", () => {});
    proxy.freeze("commands");
    await until(() => lease.remaining < LEASE / 2, { what: "a renewal to be missed" });
    proxy.thaw();
    await until(() => lease.remaining > LEASE / 2, { what: "a renewal" });
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    await lease.unlock();
    await lock.gone();
  });
});

describe("a call on a half-open connection", () => {
  it("unlock: rejects after the reply timeout; the waiter has the lock at the end of the lease at the latest", async ({
    annotate,
  }) => {
    const { far, lock, proxy } = stage;
    const party = await stage.join({ url: proxy.url, client: { leaseTime: 2_000, replyTimeout: 500 } });
    const lease = await party.locks.lock(lock.name).lock();
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    proxy.freeze("commands");
    const [error, took] = await timed(lease.unlock().catch((reason: unknown) => reason));
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(took).toBeLessThan(1_500);
    const [next, waited] = await timed(waiting);
    await annotate(`unlock() after ${took} ms, the next one ${waited} ms later`);
    proxy.thaw(); // the release arrives now
    await party.redis.ping();
    expect([next.held, await lock.holder()]).toEqual([true, expect.stringContaining(far.locks.id)]);
    await next.unlock();
  });
});

describe("a half-open subscriber", () => {
  it("gets its turns anyway, and costs others no window", async ({ annotate }) => {
    const { near, far, lock, proxy } = stage;
    await stage.warm(near);
    // For good: a connection that takes its place is as slow, and no message comes within the window.
    proxy.delay(3_500, { direction: "to client", which: "subscribers" });
    const waits: Record<"deaf" | "other", number[]> = { deaf: [], other: [] };
    const play = async (who: keyof typeof waits, { locks }: typeof near) => {
      for (let turn = 0; turn < 3; turn++) {
        const [lease, waited] = await timed(locks.lock(lock.name).lock());
        waits[who].push(waited);
        await lock.queued(1); // the other one is there
        await lease.unlock();
      }
    };
    const last = await (await stage.join()).locks.lock(lock.name).lock();
    const games = [play("deaf", near), play("other", far)];
    await lock.queued(2);
    await last.unlock();
    await Promise.race(games);
    await annotate(`deaf: ${waits.deaf}; other: ${waits.other} ms`);
    // A turn of the deaf one costs a re-check; it is lost with a window, and then the next one has it.
    expect(Math.max(...waits.deaf, ...waits.other)).toBeLessThan(3 * (3_000 + 1_925));
    expect(Math.min(waits.deaf.length, waits.other.length)).toBeGreaterThanOrEqual(2);
    proxy.delay(0);
    // the one that plays on alone needs a partner
    const rest = (await stage.join()).locks.lock(lock.name).lock();
    await Promise.all([...games, rest.then((lease) => lease.unlock())]);
  }, 60_000);

  it("is replaced and then receives its grants by message", async ({ annotate }) => {
    const { near, far, lock, proxy } = stage;
    await stage.warm(near);
    proxy.freeze("subscribers"); // this one only
    const waits = await turnsUntilHeard(far, near, lock.name);
    await annotate(`${waits} ms`);
    expect(waits.length).toBeLessThanOrEqual(4); // the test takes 1 s, and is made after the first turn
  }, 30_000);

  it.for(["lock", "fairLock"] as const)(
    "whose SUBSCRIBE is never answered gets its turns, too, also after many others: %s",
    { timeout: 40_000 },
    async (kind, { annotate }) => {
      const { far, lock, proxy } = stage;
      proxy.partition("subscribers");
      const cut = await stage.join({ url: proxy.url, client: { replyTimeout: 400 } });
      cut.locks.on("error", () => {}); // NO_MESSAGES
      let isOver = false;
      const play = async ({ locks }: typeof far) => {
        while (!isOver) await locks[kind](lock.name).withLock(() => far.redis.ping());
      };
      const rivals = await Promise.all(Array.from({ length: 12 }, () => stage.join()));
      const games = rivals.map(play); // never is it free
      const waits: number[] = [];
      for (let turn = 0; turn < 3; turn++) {
        const [lease, waited] = await timed(cut.locks[kind](lock.name).tryLock(9_000));
        waits.push(waited);
        expect(lease?.held).toBe(true);
        await lease?.unlock();
      }
      await annotate(`turns after ${waits} ms`);
      expect(Math.max(...waits)).toBeLessThan(8_000);
      isOver = true;
      await Promise.all(games);
    },
  );

  it("whose SUBSCRIBE is never answered re-checks as often as the first one, at any place in the queue", async ({
    annotate,
  }) => {
    const { far, lock, proxy } = stage;
    proxy.partition("subscribers");
    const cut = await stage.join({ url: proxy.url, client: { replyTimeout: 400 } });
    cut.locks.on("error", () => {}); // NO_MESSAGES
    const held = await far.locks.fairLock(lock.name).lock();
    const first = Array.from({ length: 110 }, () => far.locks.fairLock(lock.name).withLock(() => {}));
    await lock.queued(110);
    const waiting = cut.locks.lock(lock.name).lock();
    await lock.queued(111);
    // it knows now that it is far behind: if it believed that, it would not look for 7.5 s
    await lock.lookedAt(110);
    const [lease, waited] = await timed(held.unlock().then(() => waiting));
    await annotate(`the turn after ${waited} ms`);
    expect(waited).toBeLessThan(5_000);
    await lease.unlock();
    await Promise.all(first);
  });

  it("whose SUBSCRIBE is answered late receives its grant, and counts as a receiver", async ({
    annotate,
  }) => {
    const { far, lock, proxy } = stage;
    proxy.partition("subscribers");
    const cut = await stage.join({ url: proxy.url, client: { replyTimeout: 400 } });
    cut.locks.on("error", () => {}); // NO_MESSAGES
    const held = await far.locks.lock(lock.name).lock();
    const waiting = cut.locks.lock(lock.name).lock();
    await lock.queued(1);
    expect(await lock.counts()).toBe(false);
    proxy.thaw();
    await until(() => lock.counts(), { what: "a look after the subscription" });
    await held.unlock();
    const [lease, waited] = await timed(waiting);
    await annotate(`the turn after ${waited} ms`);
    expect(waited).toBeLessThan(350); // a re-check would be 1.1 s away at the least
    await lease.unlock();
  });

  it("finds its grant, however short its lease", async () => {
    const { far, lock, proxy } = stage;
    proxy.partition("subscribers");
    const cut = await stage.join({ url: proxy.url, client: { replyTimeout: 400 } });
    cut.locks.on("error", () => {}); // NO_MESSAGES
    const held = await far.locks.lock(lock.name).lock();
    // below the grant window, and below a re-check
    const waiting = cut.locks.lock(lock.name).lock({ lease: 1_000 });
    await lock.queued(1);
    await held.unlock();
    const granted = await lock.holder();
    expect(granted).toContain(cut.locks.id);
    const lease = await waiting;
    expect(await lock.holder()).toBe(granted); // found, and not asked for once more
    await lease.unlock();
  });

  it.each(["lock", "redissonLock"] as const)(
    "makes a caller that comes while SUBSCRIBE is unanswered, and would not wait, try: %s",
    async (kind) => {
      const { near, far, lock, proxy } = stage;
      const held = await lockOf(far.locks, kind, lock.name).lock();
      const stalled = proxy.stall(named("subscribe"));
      const came = performance.now();
      const waiting = lockOf(near.locks, kind, lock.name).lock();
      await stalled;
      await until(() => performance.now() - came > 900); // tried after 0.8 s, and after 1.6 s
      await held.unlock();
      expect(await lockOf(near.locks, kind, lock.name).tryLock()).toBeNull();
      expect(await lockOf(far.locks, kind, lock.name).isLocked()).toBe(true); // the first caller has it
      await (await waiting).unlock();
    },
  );

  it("that ended while no caller waited is reopened by a waiter that queued without a subscription", async () => {
    const { far, lock, proxy } = stage;
    const cut = await stage.join({ url: proxy.url, client: { replyTimeout: 400 } });
    const { made } = listenersOf(cut.redis);
    const held = await far.locks.lock(lock.name).lock();
    proxy.refuse(true);
    expect(await cut.locks.lock(lock.name).tryLock(1_000)).toBeNull(); // it had a place
    await until(() => made.length > 0 && made.every(({ isEnded }) => isEnded));
    proxy.refuse(false);
    const waiting = cut.locks.lock(lock.name).lock();
    await lock.queued(1);
    await until(() => lock.counts(), { what: "a place that is heard" });
    await held.unlock();
    await (await waiting).unlock();
  });
});
