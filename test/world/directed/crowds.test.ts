import { describe, expect, test } from "vitest";
import { LOCAL_HANDOFFS } from "../../../src/defaults.ts";
import type { LockOptions } from "../../../src/index.ts";
import { EPOCH } from "../simulated-process.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { inTurn, outcomeOf, R, warm } from "./steps.ts";

// Many callers: processes whose callers loop, queues with many places, and processes with many
// waiters that crash.

/** Sooner than any re-check, in ms. */
const SOON = 1_000;
/** ms: a turn begins without a round trip only this long after Redis last answered. */
const FRESH = 100;

interface Crowd {
  readonly turns: { readonly at: number; readonly token: number; readonly left: number }[];
  readonly errors: unknown[];
  end(): Promise<void>;
}

/** Callers of a process that take the lock again and again, each for `body` ms. */
function crowd(
  { pass, now }: Scene,
  one: SceneProcess,
  callers: number,
  body: number,
  options: LockOptions = {},
): Crowd {
  const [turns, errors]: [Crowd["turns"], unknown[]] = [[], []];
  let isOver = false;
  const loops = Array.from({ length: callers }, async () => {
    while (!isOver) {
      const lease = await one.take("lock", options).catch((error: unknown) => void errors.push(error));
      if (!lease) continue;
      turns.push({ at: now(), token: lease.token, left: lease.lease.remaining });
      await pass(body);
      await lease.unlock().catch((error: unknown) => errors.push(error));
    }
  });
  return {
    turns,
    errors,
    async end() {
      isOver = true;
      await Promise.all(loops);
    },
  };
}

describe("a process whose callers loop", () => {
  test.each([
    ["for 1 ms each", 16, 1, {}],
    ["for 150 ms each, so that the lock is claimed", 4, 150, {}],
    ["with a lease of their own", 8, 1, { lease: 5_000 }],
  ] as const)("%s lets another process have its turn", (_, callers, body, options) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await warm(world, one, other);
      const { end, errors } = crowd(world, one, callers, body, options);
      await world.pass(500);
      for (let i = 0; i < 5; i++) {
        const { result, took } = await world.timed(other.take("lock"));
        expect(took).toBeLessThan(SOON);
        await result.unlock();
        await world.pass(100);
      }
      await end();
      expect(errors).toEqual([]);
    })(),
  );

  test.each([
    [16, 0],
    [16, 1],
    [4, 150],
  ] as const)(
    "and which does not receive that the lock is wanted, lets it have its turn too: %i callers for %i ms each",
    (callers, body) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        await warm(world, one, other);
        const { end } = crowd(world, one, callers, body);
        await world.pass(100 + 3 * body);
        one.messages.freezeReplies(10_000);
        const { result, took } = await world.timed(other.take("lock"));
        expect(took).toBeLessThan(SOON);
        await result.unlock();
        await end();
      })(),
  );

  test(
    "serves the second process after the first one died before it was announced",
    scene(async (world) => {
      const [one, dying, other] = world.processes(3);
      await warm(world, one, other);
      const { end } = crowd(world, one, 4, 150);
      await world.pass(500);
      one.messages.freezeReplies(10_000);
      void dying.take("lock");
      await world.pass(5);
      const waiting = world.timed(other.take("lock"));
      dying.crash();
      const { result, took } = await waiting;
      expect(took).toBeLessThan(SOON);
      await result.unlock();
      await end();
    }),
  );

  test.each(["the lock's key", "all keys"] as const)(
    "and Redis loses %s: starts no turn beside the next holder for long",
    (what) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        await warm(world, one, other);
        const { turns, errors, end } = crowd(world, one, 16, 3);
        await world.pass(500);
        world.shows(/two holders of lock:a|token \d+ after/);
        if (what === "all keys") world.redis.dropAll();
        else world.redis.drop("lock:a");
        const lost = world.now();
        const next = await other.take("lock");
        await world.pass(900);
        const until = world.now();
        await next.unlock();
        await end();
        const beside = turns.filter(({ at }) => at > lost && at < until);
        expect(beside.filter(({ at }) => at > lost + FRESH)).toEqual([]);
        expect(beside.filter(({ token }) => token > next.token)).toEqual([]);
        for (const error of errors)
          expect(error).toMatchObject({
            code: "LOCK_LOST",
            reason: expect.stringMatching(/^(gone|taken)$/),
          });
      })(),
  );

  test.each([2_000, 3_600_000])(
    "tokens grow over local hand-offs if the last one is %i ms ahead of the server's time",
    (ahead) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        await warm(world, one, other);
        world.redis.setBack(ahead);
        const { turns, end } = crowd(world, one, 16, 1);
        await world.pass(1_500);
        await end();
        const tokens = turns.map(({ token }) => token);
        expect(tokens.length).toBeGreaterThan(100);
        expect(tokens.findIndex((token, i) => i > 0 && token <= (tokens[i - 1] ?? 0))).toBe(-1);
        const gaps = turns.map(({ at }, i) => at - (turns[i - 1]?.at ?? at));
        expect(Math.max(...gaps)).toBeLessThan(SOON);
      })(),
  );

  test.each([
    ["an explicit one below the window", { lease: 2_000 }, 0.9 * 2_000],
    ["an explicit one above the window", { lease: 5_000 }, 0.9 * 5_000],
    ["the watchdog's", {}, 1_500],
  ] as const)("the rest of a lease at a local hand-off is long enough: %s", (_, options, least) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await warm(world, one, other);
      const { turns, errors, end } = crowd(world, one, 4, 5, options);
      await world.pass(5_000);
      await end();
      expect(turns.length).toBeGreaterThan(500);
      expect(turns.filter(({ left }) => left < least - 10)).toEqual([]);
      expect(errors).toEqual([]);
    })(),
  );

  test(
    "tokens of local hand-offs never run ahead of the server's time",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await warm(world, one, other);
      const { turns, end } = crowd(world, one, 16, 0.1);
      await world.pass(500);
      await end();
      expect(turns.length).toBeGreaterThan(100);
      // By what a hold reserves when it is taken, and a little more.
      const most = (at: number): number => (EPOCH + at) * 1_000 + LOCAL_HANDOFFS + 1_000;
      expect(turns.filter(({ at, token }: { at: number; token: number }) => token > most(at))).toEqual([]);
    }),
  );
});

describe("600 waiters of a process that crashes", () => {
  const CROWD = 600;

  /** They have places after those that wait already. */
  async function crash({ pass, redis }: Scene, dying: SceneProcess, places: number): Promise<void> {
    for (let i = 0; i < CROWD; i++) void dying.take("fairLock");
    await pass(200);
    expect(redis.queue("fair:a")).toHaveLength(CROWD + places);
  }

  test(
    "cost one check of their channel, and the waiter after them is granted the lock at once",
    scene(async (world) => {
      const [holder, dying, other] = world.processes(3);
      const held = await holder.take("fairLock");
      await crash(world, dying, 0);
      const waiting = other.take("fairLock");
      await world.pass(50);
      dying.crash();
      await world.pass(5);
      const before = world.redis.calls("PUBSUB");
      await held.unlock();
      await inTurn(world, waiting);
      expect(world.redis.calls("PUBSUB") - before).toBeLessThan(10);
    }),
  );

  test(
    "leave nothing if no caller waits after them",
    scene(async (world) => {
      const [holder, dying] = world.processes(2);
      const held = await holder.take("fairLock");
      await crash(world, dying, 0);
      dying.crash();
      await world.pass(5);
      const before = world.redis.calls("PUBSUB");
      await held.unlock();
      expect(world.redis.calls("PUBSUB") - before).toBeLessThan(10);
      expect([world.redis.queue("fair:a"), world.redis.holders("fair:a")]).toEqual([[], []]);
    }),
  );

  test(
    "between two live ones delay neither, and take no turn",
    scene(async (world) => {
      const [holder, first, dying, last] = world.processes(4);
      const held = await holder.take("fairLock");
      const waiting = [first.take("fairLock")];
      await world.pass(20);
      await crash(world, dying, 1);
      waiting.push(last.take("fairLock"));
      await world.pass(20);
      dying.crash();
      await world.pass(5);
      await held.unlock();
      await inTurn(world, ...waiting);
    }),
  );
});

describe("300 fair waiters of one client", () => {
  test(
    "re-check together once a period, and once after a reconnect",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take("fairLock");
      const turns = Array.from({ length: 300 }, async () => (await one.take("fairLock")).unlock());
      await world.pass(500);
      const before = one.sent;
      await world.pass(10_000);
      // A period is 1.5 s, for the first place.
      expect(one.sent - before).toBeLessThan(12);
      const parked = one.sent;
      one.messages.cut();
      await world.pass(500);
      expect(one.sent - parked).toBeLessThan(5);
      await held.unlock();
      await Promise.all(turns);
    }),
  );

  test(
    "the holder crashes: they wait for its lease and one re-check of the first place",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      await holder.take("fairLock", { lease: 2_500 });
      const turns = Array.from({ length: 300 }, () => one.take("fairLock"));
      await world.pass(100);
      holder.crash();
      const { took } = await world.timed(Promise.race(turns));
      expect(took).toBeLessThanOrEqual(2_500 + R);
      for (const turn of turns) await (await turn).unlock();
    }),
  );

  test(
    "do not report a holder if Redis cannot be reached",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take("fairLock");
      const calls = Array.from({ length: 3 }, () => outcomeOf(one.take("fairLock", { wait: 3_000 })));
      await world.pass(50);
      one.freeze(20_000);
      expect(await Promise.all(calls)).toEqual(Array(3).fill(["LOCK_UNAVAILABLE", undefined]));
      await world.pass(20_000);
      await held.unlock();
    }),
  );
});

test.each(["lock", "fairLock"] as const)(
  "10 000 waiters of one client, and half of them abort: the others are served in order, nothing is left: %s",
  (kind) =>
    scene(async (world) => {
      const CROWD = 10_000;
      const [holder, one] = world.processes(2);
      // A name that the run's checks do not read: there are too many callers for them.
      const lockOf = ({ client }: SceneProcess) => client[kind]("crowd");
      const places = (): number =>
        (world.redis.state("crowd") as [string, unknown[]][]).find(([key]) => key.endsWith(":queue"))?.[1]
          .length ?? 0;
      const held = await lockOf(holder).lock();
      const enough = new AbortController();
      const order: number[] = [];
      const call = async (n: number): Promise<string> => {
        try {
          const lease = await lockOf(one).lock(n % 2 === 1 ? { signal: enough.signal } : {});
          order.push(n);
          await lease.unlock();
          return "had it";
        } catch (error) {
          return error === "enough" ? "gave up" : String(error);
        }
      };
      const calls: Promise<string>[] = [];
      while (calls.length < CROWD) {
        // In virtual time it is slow to read so many replies of one moment.
        for (let i = 0; i < 100; i++) calls.push(call(calls.length));
        await world.pass(2);
      }
      await world.pass(4_000);
      expect(places()).toBe(kind === "lock" ? 1 : CROWD);
      enough.abort("enough");
      const { took } = await world.timed(Promise.all(calls.filter((_, n) => n % 2 === 1)));
      expect(took).toBeLessThan(10);
      await world.pass(2_000);
      expect(places()).toBe(kind === "lock" ? 1 : CROWD / 2);
      await held.unlock();
      const outcomes = await Promise.all(calls);
      expect(outcomes).toEqual(calls.map((_, n) => (n % 2 === 1 ? "gave up" : "had it")));
      expect(order).toEqual(Array.from({ length: CROWD / 2 }, (_, n) => 2 * n));
      expect(world.redis.keys("crowd").filter((key) => !key.endsWith(":clients"))).toEqual([]);
    })(),
);

test(
  "a subscription that was dropped unnoticed: its client gets its turn while others hand over to each other",
  scene(async (world) => {
    const [one, ...rivals] = world.processes(4);
    await warm(world, one, rivals[0]);
    one.messages.dropUnnoticed();
    let isOver = false;
    const games = rivals.map(async (rival) => {
      while (!isOver) {
        const lease = await rival.take("lock");
        await world.pass(1);
        await lease.unlock();
      }
    });
    await world.pass(50);
    const { result, took } = await world.timed(one.take("lock"));
    isOver = true;
    expect(took).toBeLessThanOrEqual(2 * R);
    await result.unlock();
    await Promise.all(games);
  }),
);

test(
  "a subscription that was dropped unnoticed costs the others no window: the entry is skipped",
  scene(async (world) => {
    const [holder, dropped, other] = world.processes(3);
    const held = await holder.take("lock");
    const skipped = dropped.take("lock");
    await world.pass(20);
    const waiting = other.take("lock");
    await world.pass(20);
    dropped.messages.dropUnnoticed();
    await world.pass(1);
    await held.unlock();
    await inTurn(world, waiting);
    await (await skipped).unlock();
  }),
);

describe("a slow way to Redis", () => {
  test(
    "does not cost a caller its answer if it comes while another one's try is under way",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      await (await one.take("lock")).unlock();
      const held = await holder.take("lock");
      // Two tries take more than the 500 ms that one caller would have.
      world.delay(135);
      const tries = [one.tryTake("lock"), one.tryTake("lock")];
      expect(await Promise.all(tries)).toEqual([null, null]);
      world.delay(0.2);
      await held.unlock();
    }),
  );

  const KINDS = ["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const;
  const tooShort = (lease: number) => ({
    code: "LOCK_UNAVAILABLE",
    message: expect.stringMatching(
      new RegExp(
        `its lease of ${lease} ms was over before the caller could have it: Redis took \\S+ m?s to answer`,
      ),
    ),
  });

  test.each([...KINDS.map((kind) => [kind, 150] as const), ["lock", 60] as const])(
    "%s: a lease shorter than two answers, %i ms: lock() without end is refused, after a few commands",
    (kind, lease) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        await (await one.take(kind, { name: "b" })).unlock();
        world.delay(50);
        const before = one.sent;
        await expect(one.take(kind, { lease })).rejects.toMatchObject(tooShort(lease));
        await world.pass(500);
        expect(one.sent - before).toBeLessThanOrEqual(24);
        world.delay(0.2);
        await (await other.take(kind, { wait: 5_000 })).unlock();
      })(),
  );

  test.each(KINDS)("%s: tryLock() reports that too, and not that Redis did not answer", (kind) =>
    scene(async (world) => {
      const [one] = world.processes(1);
      world.delay(50);
      await expect(one.tryTake(kind, { lease: 60 })).rejects.toMatchObject(tooShort(60));
      await expect(one.tryTake(kind, { name: "b", lease: 150 })).rejects.toMatchObject(tooShort(150));
      await world.pass(1_000);
    })(),
  );

  test(
    "20 waiters with such a lease are refused together, and one with a longer lease gets the lock",
    scene(async (world) => {
      const [one] = world.processes(1);
      world.delay(50);
      const short = Array.from({ length: 20 }, () =>
        one.take("lock", { lease: 60 }).catch((error: unknown) => error),
      );
      const long = one.take("lock", { lease: 5_000 });
      const { result: errors, took } = await world.timed(Promise.all(short));
      for (const error of errors) expect(error).toMatchObject(tooShort(60));
      expect(took).toBeLessThan(3_000);
      await (await long).unlock();
    }),
  );

  test(
    "several locks together are refused, after a few commands",
    scene(async (world) => {
      const [one] = world.processes(1);
      world.delay(50);
      const before = one.sent;
      await expect(one.takeAll(["lock:a", "lock:b"], { lease: 60 })).rejects.toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringContaining("lease of 60 ms"),
      });
      await world.pass(500);
      expect(one.sent - before).toBeLessThanOrEqual(30);
    }),
  );

  test(
    "one slow moment costs nothing: the next try has the lock",
    scene(async (world) => {
      const [one] = world.processes(1);
      await (await one.take("lock", { name: "b" })).unlock();
      world.delay(250);
      const waiting = one.take("lock", { lease: 400 });
      await world.pass(300);
      world.delay(0.2);
      const lease = await waiting;
      expect(lease.held).toBe(true);
      await lease.unlock();
    }),
  );
});
