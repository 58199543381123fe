import { describe, expect, test } from "vitest";
import { TURNS_TIME } from "../../../src/defaults.ts";
import type { Lease } from "../../../src/index.ts";
import { cachedBy, comesSoon, FRESH, granted, LINGER, S, three, use } from "./caching.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, outcomeOf, warm } from "./steps.ts";

// docs/guarantees.md, "Cached locks": callers of one process that come to a cached lock together,
// and messages and answers that cross on the way.

const UNAVAILABLE = ["LOCK_UNAVAILABLE", undefined];
/** ms: the first command of a call with a short wait, or none, and a little more. */
const FIRST_REPLY = 500 + 20;

/** The same, and the first one has just cached the lock, and has used it so often that it is worth it. */
async function kept(world: Scene): Promise<[SceneProcess, SceneProcess, SceneProcess]> {
  const all = await three(world);
  for (let i = 0; i < 6; i++) await use(all[0]);
  expect(all[0].client.stats().kept).toBe(1);
  return all;
}

/** It is cached, and what is known of it is too old for a caller that does not ask. */
async function stale(world: Scene): Promise<[SceneProcess, SceneProcess, SceneProcess]> {
  const all = await kept(world);
  await world.pass(3 * FRESH);
  expect(all[0].client.stats().kept).toBe(1);
  return all;
}

describe("another caller of the process comes while one asks Redis for its cached lock", () => {
  test.each([
    ["", {}],
    [" with a short wait", { wait: 50 }],
  ])("Redis hangs: tryLock()%s throws, and does not say busy", (_, options) =>
    scene(async (world) => {
      const [one] = await stale(world);
      one.commands.freeze(2_000);
      const first = world.timed(outcomeOf(one.take("lock", { wait: 300 })));
      expect(await outcomeOf(one.tryTake("lock", options))).toEqual(UNAVAILABLE);
      const { result, took } = await first;
      expect([result, took < FIRST_REPLY]).toEqual([UNAVAILABLE, true]);
      await world.pass(4_000);
    })(),
  );

  test(
    "tryLock() says busy once that caller has it",
    scene(async (world) => {
      const [one] = await stale(world);
      one.commands.freezeReplies(100);
      const { second, isHeld, first } = await one.does(async () => {
        const lock = one.client.lock("lock:a");
        let isHeld = false;
        const first = lock.lock().then((lease) => {
          isHeld = true;
          return lease;
        });
        const second = await lock.tryLock();
        return { second, isHeld, first };
      });
      expect([second, isHeld]).toEqual([null, true]);
      await one.does(async () => (await first).unlock());
    }),
  );

  test(
    "that caller gives up: tryLock() has the lock",
    scene(async (world) => {
      const [one] = await stale(world);
      const { first, second } = await one.does(() => {
        const lock = one.client.lock("lock:a");
        const enough = new AbortController();
        const first = lock.lock({ signal: enough.signal }).catch((reason: unknown) => reason);
        enough.abort("enough");
        return { first, second: lock.tryLock() };
      });
      const lease = await second;
      expect([lease?.held, await first]).toEqual([true, "enough"]);
      await one.does(() => lease?.unlock());
    }),
  );

  test(
    "that caller waits for a turn of the event loop, and gives up: tryLock() has the lock",
    scene(async (world) => {
      const [one] = await stale(world);
      const { first, second } = await one.does(async () => {
        const lock = one.client.lock("lock:a");
        // Now Redis has just said that it is theirs.
        for (let i = 0; i < 2; i++) await (await lock.lock()).unlock();
        // Callers have come and gone for so long that the next one waits for another turn.
        one.block(2 * TURNS_TIME);
        const enough = new AbortController();
        const first = lock.lock({ signal: enough.signal }).catch((reason: unknown) => reason);
        const second = lock.tryLock();
        enough.abort("enough");
        return { first, second };
      });
      const lease = await second;
      expect([lease?.held, await first]).toEqual([true, "enough"]);
      await one.does(() => lease?.unlock());
    }),
  );

  test(
    "in a listener of its acquire event: tryLock() says busy at once",
    scene(async (world) => {
      const [one] = await kept(world);
      let second: Promise<Lease | null> | undefined;
      one.client.once("acquire", () => {
        second = one.client.lock("lock:a").tryLock();
      });
      const { result: lease, took } = await world.timed(one.take("lock"));
      expect([took, await second, lease.held]).toEqual([0, null, true]);
      await lease.unlock();
    }),
  );
});

test.each([-20, -10, -5, 0, FRESH, S])(
  "the event loop is blocked until %i ms after S, and no process wants the lock: it is taken anew, and no loss is reported",
  (late) =>
    scene(async (world) => {
      const [one] = await kept(world);
      const lost = one.heard("lost");
      const last = await one.take("lock");
      await last.unlock();
      // In the first statement: no timer has run, and nothing was read.
      const lease = await one.does(() => {
        one.block(S + late);
        return one.client.lock("lock:a").tryLock();
      });
      expect(lease?.held).toBe(true);
      expect(lease?.token).toBeGreaterThan(last.token);
      await one.does(() => lease?.unlock());
      expect(lost).toEqual([]);
    })(),
);

describe("a cached lock that another process has given to this one", () => {
  test(
    "goes to another one's tryLock() without `wait`",
    scene(async (world) => {
      const [one, other] = await kept(world);
      await (await granted(world, one, other)).unlock();
      await world.pass(10);
      const { kept: count, recalled } = one.client.stats();
      const lease = await other.tryTake("lock");
      expect([count, lease === null]).toEqual([1, false]);
      expect(one.client.stats()).toMatchObject({ kept: 0, recalled: recalled + 1 });
      await lease?.unlock();
    }),
  );

  test(
    "goes to a process that queued before Redis was told to notify this one",
    scene(async (world) => {
      const [one, other] = await kept(world);
      const lease = await granted(world, one, other);
      one.commands.freeze(200);
      const { took } = await world.timed(lease.unlock());
      expect([took, one.client.stats().kept]).toEqual([0, 1]);
      const { result: next, took: waited } = await world.timed(other.take("lock"));
      expect(waited).toBeLessThan(200 + 2 * BY_MESSAGE);
      expect(one.client.stats().kept).toBe(0);
      await next.unlock();
    }),
  );

  test(
    "is not cached if its connection for messages has broken",
    scene(async (world) => {
      const [one, other] = await kept(world);
      const lease = await granted(world, one, other);
      one.messages.cut({ back: 60_000 });
      await world.pass(1);
      await lease.unlock();
      await world.pass(1);
      expect(cachedBy(world, one)).toEqual([0, []]);
    }),
  );

  test.each(["close()", "process.exit()"] as const)(
    "%s right after the unlock, before Redis was told: it is free at once",
    (how) =>
      scene(async (world) => {
        const [one, other] = await kept(world);
        const lease = await granted(world, one, other);
        await lease.unlock();
        expect(one.client.stats().kept).toBe(1);
        if (how === "close()") await one.does(() => one.client.close());
        else await one.does(() => one.exit());
        await world.pass(1);
        expect(world.redis.holders("lock:a")).toEqual([]);
      })(),
  );
});

describe("a lock whose holder could not know yet that another process waits", () => {
  test.each(["is read before", "is lost before"] as const)(
    "the message %s the answer to its acquisition: it is released after the body",
    (what) =>
      scene(async (world) => {
        const [one, other] = await three(world);
        const taken = one.on("acquire").executed(() => one.commands.freezeReplies(500));
        const taking = one.take("lock");
        await taken;
        if (what === "is lost before") one.messages.cut();
        const waiting = other.take("lock");
        await (await taking).unlock();
        await (await comesSoon(world, waiting)).unlock();
        expect(one.client.stats().kept).toBe(0);
      })(),
  );

  test.each([
    ["while its acquisition is under way", {}, 0],
    ["and its body is long, with a lease of its own", { lease: S - 500 }, 2 * FRESH],
  ] as const)(
    "one waits that came after a tryLock() of another one, %s: it is released after the body",
    (_, options, body) =>
      scene(async (world) => {
        const [one, other, third] = await three(world);
        const isEarly = body === 0;
        const taken = one.on("acquire").executed(() => isEarly && one.commands.freezeReplies(200));
        const taking = one.take("lock", options);
        await taken;
        if (!isEarly) await taking;
        const tried = other.on("acquire").executed();
        const busy = other.tryTake("lock");
        await tried;
        await other.on("acquire").executed();
        const waiting = third.take("lock");
        expect(await busy).toBeNull();
        await world.pass(10);
        expect(world.redis.queue("lock:a")).toEqual([third.number]);
        const lease = await taking;
        await world.pass(body);
        await lease.unlock();
        await (await comesSoon(world, waiting)).unlock();
      })(),
  );
});

test(
  "a lock is cached, and taken again without a round trip, also by a client with a long grant window",
  scene(async (world) => {
    const [one] = world.processes(1, { linger: LINGER, grantWindow: 10_000 });
    const [other] = world.processes(1);
    await warm(world, one, other);
    await use(one);
    expect(one.client.stats().kept).toBe(1);
    expect((await world.timed(use(one))).took).toBe(0);
  }),
);

test(
  "a listener of `recall` makes a call: it queues once, after the caller that wants the lock",
  scene(async (world) => {
    const [one, other] = await kept(world);
    const calls: Promise<Lease>[] = [];
    one.client.once("recall", () => calls.push(one.client.lock("lock:a").lock()));
    const next = await comesSoon(world, other.take("lock"));
    await world.pass(10);
    expect(world.redis.queue("lock:a")).toEqual([one.number]);
    await next.unlock();
    const lease = await calls[0];
    expect(lease?.held).toBe(true);
    await one.does(() => lease?.unlock());
  }),
);

test(
  "a caller with a long lease takes the cached lock: it is extended, and not cached after that",
  scene(async (world) => {
    const [one] = await kept(world);
    const lease = await one.take("lock", { lease: 20_000 });
    expect(world.redis.left("lock:a")).toBeGreaterThan(S);
    await lease.unlock();
    await world.pass(1);
    expect(cachedBy(world, one)).toEqual([0, []]);
  }),
);

test(
  "the cached lock is unlocked while an extension is under way: it is not cached",
  scene(async (world) => {
    const [one] = await kept(world);
    const lease = await one.does(() => one.client.lock("lock:a").lock());
    const extending = outcomeOf(lease.extend(60_000));
    await one.does(() => lease.unlock());
    await extending;
    await world.pass(5);
    expect(cachedBy(world, one)).toEqual([0, []]);
  }),
);

test(
  "a multi-lock takes cached locks: all of them are released after it",
  scene(async (world) => {
    const [one] = await kept(world);
    await use(one, { name: "b" });
    const lease = await one.takeAll(["lock:a", "lock:b"]);
    await one.does(() => lease.unlock());
    await world.pass(1);
    expect([one.client.stats().kept, world.redis.holders("lock:a"), world.redis.holders("lock:b")]).toEqual([
      0,
      [],
      [],
    ]);
  }),
);

test(
  "a holder's late `busy` answers those that came before that question: one that came after it has the lock",
  scene(async (world) => {
    const [one, other] = await three(world);
    const held = await one.take("lock");
    other.messages.freezeReplies(45);
    const first = other.tryTake("lock");
    await world.pass(20);
    await held.unlock();
    await world.pass(20);
    const second = await other.tryTake("lock");
    expect([await first, second?.held]).toEqual([null, true]);
    await second?.unlock();
  }),
);

test(
  "it is force-released while the next caller here asks: `lost` tells that, and by whose label",
  scene(async (world) => {
    const [one, other] = await stale(world);
    const lost = one.heard("lost");
    one.commands.freeze(200);
    const next = one.take("lock");
    await other.does(() => other.client.lock("lock:a").forceUnlock({ label: "operator" }));
    await (await next).unlock();
    expect(lost.map(({ error }) => error)).toMatchObject([{ reason: "revoked", by: "operator" }]);
  }),
);
