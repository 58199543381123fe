import { describe, expect, test } from "vitest";
import { OVERLAP_MAX, TURNS_TIME } from "../../../src/defaults.ts";
import type { ReadWriteLock } from "../../../src/index.ts";
import { FRESH, LINGER, S, three } from "./caching.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess, TakeOptions } from "./scene-process.ts";
import { BY_MESSAGE, warm } from "./steps.ts";

// docs/guarantees.md, "Cached reads": how they are taken again, what ends them, and writers that do
// not wait. Redis's answers to writers that do are in cached-locks.test.ts.

/** The most holds of one lock that are cached. */
const MOST_TOLD = 16;
const KEY = "holdfast:rw:{rw:a}";

const pairOf = ({ client }: SceneProcess): ReadWriteLock => client.readWriteLock("rw:a");

/** A reader comes and goes. */
async function use(one: SceneProcess, options?: TakeOptions): Promise<void> {
  await (await one.take("read", options)).unlock();
}

/** The same, and the first one has cached its reads with no reader inside. */
async function kept(world: Scene): Promise<[SceneProcess, SceneProcess, SceneProcess]> {
  const all = await three(world);
  await use(all[0]);
  await world.pass(1);
  expect(cachedBy(world, all[0])).toEqual([1, [all[0].number]]);
  return all;
}

/** How many holds the process caches, and which processes have one in Redis. */
const cachedBy = ({ redis }: Scene, { client }: SceneProcess): [number, number[]] => [
  client.stats().kept,
  redis.holders("rw:a"),
];

/** Another client asks the holder of the only hold, as for a writer that does not wait. */
async function ask({ redis }: Scene, other: SceneProcess): Promise<void> {
  const [hold = ""] = redis.holds("rw:a");
  const told = other.onMessage("busy");
  redis.publish(hold.slice(0, -22), `recall ${hold} ${other.client.id}.0123456789abcdef ${KEY}`);
  await told;
}

describe("cached reads", () => {
  test(
    "are taken again without a command, with the token of their phase, and reported as `kept`",
    scene(async (world) => {
      const [one] = await kept(world);
      const acquired = one.heard("acquire");
      const { sent } = one;
      const [first, second] = [await one.take("read"), await one.take("read")];
      expect([one.sent - sent, second.token]).toEqual([0, first.token]);
      await first.unlock();
      await second.unlock();
      expect(acquired.map(({ kept }) => kept)).toEqual([true, false]);
      expect(one.client.stats()).toMatchObject({ kept: 1, takenAgain: 1, recalled: 0 });
    }),
  );

  test(
    "are confirmed by one command after a pause without readers; by a reader with `linger: 0` also released after it",
    scene(async (world) => {
      const [one] = await kept(world);
      await world.pass(2 * FRESH);
      const before = one.sent;
      await use(one);
      expect([one.sent - before, one.client.stats().kept]).toEqual([1, 1]);
      const { sent } = one;
      const { read } = one.client.readWriteLock("rw:a", { linger: 0 });
      await one.does(() => read.withLock(() => {}));
      await world.pass(1);
      expect([one.sent - sent, world.redis.holders("rw:a")]).toEqual([2, []]);
    }),
  );

  test(
    "end after `linger`, and with close()",
    scene(async (world) => {
      const [one] = await kept(world);
      await world.pass(LINGER + 300);
      expect(cachedBy(world, one)).toEqual([0, []]);
      expect(one.client.stats().lapsed).toBe(1);
      await use(one);
      expect(one.client.stats().kept).toBe(1);
      await one.does(() => one.client.close());
      expect(world.redis.holders("rw:a")).toEqual([]);
    }),
  );

  test(
    "go to a writer, which is an event, and are not cached for a while after that",
    scene(async (world) => {
      const [one, other, third] = await kept(world);
      const recalled = one.heard("recall");
      const writer = await other.take("write");
      expect(await one.tryTake("read")).toBeNull();
      // Beside a writer no client is asked.
      const { sent } = third;
      expect(await third.tryTake("write")).toBeNull();
      expect(third.sent - sent).toBe(1);
      await writer.unlock();
      expect(recalled).toMatchObject([{ name: "rw:a", kind: "read", uses: 0 }]);
      await use(one);
      await world.pass(1);
      expect(cachedBy(world, one)).toEqual([0, []]);
      expect(one.client.stats()).toMatchObject({ recalled: 1, recalledUnused: 1 });
    }),
  );

  test(
    "go to a writer of their own process, which is no recall",
    scene(async (world) => {
      const [one] = await kept(world);
      const writer = await one.tryTake("write");
      expect(writer?.held).toBe(true);
      await writer?.unlock();
      expect(one.client.stats()).toMatchObject({ kept: 0, recalled: 0 });
    }),
  );

  test(
    "end when a writer of their own process has come while a reader was inside",
    scene(async (world) => {
      const [one] = await kept(world);
      const reader = await one.take("read");
      const writing = one.take("write");
      await reader.unlock();
      await (await writing).unlock();
      expect(one.client.stats()).toMatchObject({ kept: 0, recalled: 0 });
    }),
  );

  test(
    "end by force-release: they are recalled first, and no reader enters beside the writer that follows",
    scene(async (world) => {
      const [one, other] = await kept(world);
      one.messages.freezeReplies(10);
      expect(await other.does(() => pairOf(other).read.forceUnlock())).toBe(true);
      const writer = await other.tryTake("write");
      expect([writer?.held, await one.tryTake("read")]).toEqual([true, null]);
      await writer?.unlock();
    }),
  );

  test(
    "end when the connection for messages breaks",
    scene(async (world) => {
      const [one] = await kept(world);
      one.messages.cut({ back: 5_000 });
      const { took } = await world.timed(world.until(() => world.redis.holders("rw:a").length === 0));
      expect(took).toBeLessThan(300);
    }),
  );

  test(
    "end with their process, also if Redis has forgotten the scripts",
    scene(async (world) => {
      const [one] = await kept(world);
      for (const name of ["b", "c"]) await use(one, { name });
      await world.pass(1);
      expect(one.client.stats().kept).toBe(3);
      world.redis.flushScripts();
      await one.does(() => one.exit());
      await world.pass(5);
      expect(["rw:a", "rw:b", "rw:c"].flatMap((name) => world.redis.holders(name))).toEqual([]);
    }),
  );

  test(
    "are lost with no reader inside: that is reported",
    scene(async (world) => {
      const [one] = await kept(world);
      const lost = one.heard("lost");
      world.redis.drop("rw:a");
      await world.pass(FRESH);
      await use(one);
      expect(lost).toMatchObject([{ kind: "read", error: { reason: "gone" } }]);
    }),
  );

  test(
    "the message to their process is lost while readers come and go: the writer has the lock within 150 ms",
    scene(async (world) => {
      const [one, other] = await kept(world);
      one.messages.freezeReplies(10_000);
      const waiting = world.timed(other.take("write"));
      let isOver = false;
      const reading = (async () => {
        while (!isOver) {
          const reader = await one.tryTake("read");
          await world.pass(5);
          await reader?.unlock();
          await world.pass(1);
        }
      })();
      const { result: writer, took } = await waiting;
      isOver = true;
      expect(took).toBeLessThan(FRESH + 50);
      await writer.unlock();
      await reading;
    }),
  );

  test(
    "readers that come one after the other enter without a command for 100 ms, turns of the event loop included",
    scene(async (world) => {
      const [one] = await kept(world);
      const { read } = pairOf(one);
      const { sent } = one;
      let turns = 0;
      await one.does(async () => {
        const since = world.now();
        while (world.now() < since + FRESH - 10) {
          const reader = await read.lock();
          one.block(TURNS_TIME);
          await reader.unlock();
          turns++;
        }
      });
      expect(turns).toBeGreaterThan(10);
      expect([one.sent - sent, one.client.stats().kept]).toEqual([0, 1]);
    }),
  );

  test(
    "a reader that waits too long for a turn of the event loop asks Redis",
    scene(async (world) => {
      const [one] = await kept(world);
      const { first, second } = await one.does(async () => {
        const { read } = pairOf(one);
        const first = await read.lock();
        // Longer than readers may come in without a turn.
        one.block(2 * TURNS_TIME);
        const resting = read.tryLock();
        world.redis.drop("rw:a");
        one.block(2 * FRESH);
        return { first, second: await resting };
      });
      expect(second?.token).toBeGreaterThan(first.token);
      await one.does(() => first.unlock().catch(() => {}));
      await one.does(() => second?.unlock());
    }),
  );
});

test(
  "reads that came by a grant are not cached, because a writer could not recall them; the next ones are",
  scene(async (world) => {
    const [one, other] = await three(world);
    const writer = await other.take("write");
    const reading = [one.take("read"), one.take("read")];
    await world.pass(50);
    await writer.unlock();
    for (const reader of await Promise.all(reading)) await reader.unlock();
    await world.pass(1);
    expect(cachedBy(world, one)).toEqual([0, []]);
    await use(one);
    expect(one.client.stats().kept).toBe(1);
  }),
);

test(
  "readers with `fair: true` are not cached",
  scene(async (world) => {
    const [one] = await three(world);
    for (let i = 0; i < 3; i++) {
      await (await one.take("fair read")).unlock();
      await world.pass(1);
      expect([one.client.stats().kept, world.redis.holders("frw:a")]).toEqual([0, []]);
    }
    // Its lock caches the reads of others.
    await use(one);
    expect(one.client.stats().kept).toBe(1);
  }),
);

test(
  "17 processes cache reads of a lock: 16 holds stay, and a writer recalls all of them at once",
  scene(async (world) => {
    const readers = world.processes(17, { linger: LINGER });
    const [writer, other] = world.processes(2);
    for (const one of [...readers, writer]) await warm(world, one, other);
    await Promise.all(readers.map((one) => use(one)));
    await world.pass(1);
    expect(readers.filter(({ client }) => client.stats().kept === 1)).toHaveLength(MOST_TOLD);
    expect(world.redis.holders("rw:a")).toHaveLength(MOST_TOLD);
    const { result, took } = await world.timed(writer.take("write"));
    expect(took).toBeLessThan(2 * BY_MESSAGE);
    await result.unlock();
  }),
);

describe("a writer's tryLock() without `wait`", () => {
  test(
    "does not divide readers: others come in beside the one that is inside",
    scene(async (world) => {
      const [one, other, third] = await kept(world);
      const inside = await one.take("read");
      let isOver = false;
      const trying = (async () => {
        for (let i = 0; i < 20; i++) expect(await third.tryTake("write")).toBeNull();
        isOver = true;
      })();
      while (!isOver) {
        const reader = await other.tryTake("read");
        expect(reader).not.toBeNull();
        await reader?.unlock();
        await world.pass(0.1);
      }
      await trying;
      await inside.unlock();
    }),
  );

  test.each([
    ["alone", BY_MESSAGE],
    ["in a multi-lock, which tries twice", 2 * BY_MESSAGE + OVERLAP_MAX],
  ] as const)(
    "beside a reader whose client caches nothing, %s: busy at once, and the cached reads of others stay",
    (how, most) =>
      scene(async (world) => {
        const [one, other, third] = await three(world);
        const inside = await other.take("read");
        await use(one);
        expect(one.client.stats().kept).toBe(1);
        const recalled = one.heard("recall");
        const { write } = pairOf(third);
        const several = third.client.multiLock([write, third.client.lock("lock:b")]);
        const { result, took } = await world.timed(
          third.does<unknown>(() => (how === "alone" ? write.tryLock() : several.tryLock())),
        );
        expect([result, took < most, world.redis.queue("rw:a")]).toEqual([null, true, []]);
        await world.pass(10);
        expect([recalled, one.client.stats().kept]).toEqual([[], 1]);
        await inside.unlock();
      })(),
  );

  test.each([
    ["at once", 0],
    ["long after", FRESH],
  ])(
    "was told of a reader, which leaves %s: its hold is not cached, because another caller may have queued",
    (_, body) =>
      scene(async (world) => {
        const [one, other] = await kept(world);
        // Neither claimed nor renewed.
        const reader = await one.take("read", { lease: S - 500 });
        await ask(world, other);
        await world.pass(body);
        await reader.unlock();
        await world.pass(1);
        expect(cachedBy(world, one)).toEqual([0, []]);
      })(),
  );
});

test(
  "recall() of a process that is stopped: readers come in meanwhile, and a writer's tryLock() is answered soon",
  scene(async (world) => {
    const [one, other, third] = await kept(world);
    one.pause(2_000);
    const recalling = other.does(() => pairOf(other).read.recall());
    await world.pass(10);
    const { result: reader, took } = await world.timed(third.take("read"));
    expect(took).toBeLessThan(BY_MESSAGE);
    await reader.unlock();
    expect(await recalling).toBe("silent");
    const writing = await world.timed(third.tryTake("write"));
    await world.pass(1);
    expect([writing.result, writing.took < 100, world.redis.queue("rw:a")]).toEqual([null, true, []]);
    await world.pass(3_000);
  }),
);

describe("the answer that brought the hold was slow, so it is claimed before its reader is inside", () => {
  /** Its claim is on its way. */
  async function claimed(world: Scene) {
    const [one, other] = await three(world);
    const late = one.on("acquire").executed(() => one.commands.freezeReplies(S / 2 + 100));
    const reading = one.take("read");
    await late;
    // Sooner than what Redis has said is too old.
    await one.on("renew").executed(() => one.commands.freezeReplies(FRESH / 2));
    return { one, other, reading };
  }

  test(
    "a recall is read meanwhile: no further reader enters",
    scene(async (world) => {
      const { one, other, reading } = await claimed(world);
      const recalled = one.onMessage("recall");
      const writing = other.take("write");
      await recalled;
      const reader = await reading;
      expect(await one.tryTake("read")).toBeNull();
      await reader.unlock();
      await (await writing).unlock();
    }),
  );

  test(
    "a writer that does not wait asks meanwhile: it is told, and nothing is cached after that",
    scene(async (world) => {
      const { one, other, reading } = await claimed(world);
      await ask(world, other);
      await (await reading).unlock();
      await world.pass(1);
      expect(cachedBy(world, one)).toEqual([0, []]);
    }),
  );
});

test(
  "a loss is told once, although a reader that joins meanwhile finds nothing either",
  scene(async (world) => {
    const [one, other] = await three(world);
    await (await one.take("read")).unlock(); // cached
    await world.pass(1);
    const first = await one.take("read", { lease: 2_000 });
    await world.pass(FRESH + 20);
    const lost = one.heard("lost");
    const forced = other.on("force-release").executed();
    const force = other.does(() => other.client.readWriteLock("rw:a").read.forceUnlock());
    await forced;
    const second = one.take("read", { lease: 2_900 });
    await force;
    await (await second).unlock();
    await first.unlock().catch(() => {});
    expect(lost.map(({ error, call }) => [error.reason, call])).toHaveLength(1);
  }),
);
