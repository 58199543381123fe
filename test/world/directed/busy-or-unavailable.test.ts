import { describe, expect, test } from "vitest";
import type { Lock, LockClient, LockOptions } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, outcomeOf, warm } from "./steps.ts";

// A caller is told that another one holds the lock when that is so, and only then: not while Redis
// hangs, and not of a lock that is free, whatever the other callers of its process are doing just
// then.

const KINDS = [
  "lock",
  "fairLock",
  "redissonLock",
  "redissonFencedLock",
  "spinLock",
  "permit",
  "readLock",
  "writeLock",
  "multiLock",
  "election",
] as const;
type Kind = (typeof KINDS)[number];

/** Those whose waiters stand in a queue of Redis, as those of a member of a multi-lock do. */
const QUEUING = KINDS.filter((kind) => !/^(redisson|spin|multi)/.test(kind));

/** The key that says who holds "x". */
const KEYS: Readonly<Record<Kind, string>> = {
  lock: "holdfast:{x}",
  fairLock: "holdfast:{x}",
  multiLock: "holdfast:{x}",
  redissonLock: "x",
  redissonFencedLock: "x",
  spinLock: "x",
  permit: "holdfast:semaphore:{x}",
  readLock: "holdfast:rw:{x}",
  writeLock: "holdfast:rw:{x}",
  election: "holdfast:election:{x}",
};

const UNAVAILABLE = ["LOCK_UNAVAILABLE", undefined];
/** ms: in that time no caller of these tests gives up. */
const STALL = 4_000;
/** ms: longer than callers of a process come before those of another one. */
const AFTER_LOCAL_HANDOFFS = 50;

interface Got {
  readonly held: boolean;
  unlock(): Promise<unknown>;
}

interface Door {
  lock(options?: LockOptions): Promise<Got>;
  /** Null: another caller has it. */
  tryLock(options?: LockOptions): Promise<Got | null>;
}

function doorOf(one: SceneProcess, kind: Kind): Door {
  const { client } = one;
  const { spinLock, redissonLock, redissonFencedLock } = one.member.process.product;
  if (kind === "permit") {
    const semaphore = client.semaphore("x", { permits: 1 });
    const unlockable = (lease: { held: boolean; release(): Promise<void> } | null) =>
      lease && Object.defineProperty(lease, "unlock", { value: () => lease.release() });
    return {
      lock: async (options = {}) => unlockable(await semaphore.acquire(options)) as unknown as Got,
      tryLock: async (options = {}) =>
        unlockable(await semaphore.tryAcquire(options)) as unknown as Got | null,
    };
  }
  if (kind === "election") {
    const lock = async ({ wait = Number.POSITIVE_INFINITY, signal }: LockOptions = {}): Promise<Got> => {
      const term = await client.election("x").campaign({ wait, ...(signal && { signal }) });
      return { held: term.held, unlock: () => term.resign() };
    };
    const tryLock = (options: LockOptions = {}) =>
      lock({ wait: 0, ...options }).catch((error: { code?: string }) => {
        if (error.code === "LOCK_TIMEOUT") return null;
        throw error;
      });
    return { lock, tryLock };
  }
  if (kind === "readLock") return client.readWriteLock("x").read;
  if (kind === "writeLock") return client.readWriteLock("x").write;
  if (kind === "multiLock") return client.multiLock(["x", "y"]) as Door;
  if (kind === "spinLock") return spinLock(client, "x");
  if (kind === "redissonLock") return redissonLock(client, "x");
  if (kind === "redissonFencedLock") return redissonFencedLock(client, "x");
  return client[kind]("x");
}

/** Two processes at its door; the other one keeps all callers of the first one out. */
function doors(world: Scene, kind: Kind) {
  const [near, far] = world.processes(2);
  near.heard("error");
  return {
    near,
    far,
    mine: doorOf(near, kind),
    theirs: doorOf(far, kind === "readLock" ? "writeLock" : kind),
  };
}

/** The other process has it, and a caller of the first one waits for it. */
async function waiting(world: Scene, kind: Kind) {
  const both = doors(world, kind);
  const held = await both.theirs.lock();
  const enough = new AbortController();
  const over = both.mine.lock({ signal: enough.signal }).catch(() => null);
  await world.pass(50);
  return { ...both, held, enough, over };
}

describe.each(KINDS)("%s", (kind) => {
  test(
    "beside a caller that asks throws while Redis hangs",
    scene(async (world) => {
      const { near, mine } = doors(world, kind);
      near.freeze(STALL);
      const calls = [mine.lock({ wait: 100 }), mine.tryLock(), mine.tryLock({ wait: 50 })];
      expect(await Promise.all(calls.map(outcomeOf))).toEqual(Array(3).fill(UNAVAILABLE));
      await world.pass(3 * STALL);
    }),
  );

  test.each([
    ["", {}],
    [", also at the end of a short wait", { wait: 50 }],
  ])("beside a caller that waits throws while Redis hangs%s", (_, options) =>
    scene(async (world) => {
      const { near, mine, held, enough, over } = await waiting(world, kind);
      near.freeze(STALL);
      expect(await outcomeOf(mine.tryLock(options))).toEqual(UNAVAILABLE);
      enough.abort();
      expect(await over).toBeNull();
      await world.pass(2 * STALL);
      await held.unlock();
    })(),
  );

  test(
    "beside a waiting caller says busy while another process has it",
    scene(async (world) => {
      const { mine, held, over } = await waiting(world, kind);
      expect(await mine.tryLock()).toBeNull();
      expect(await mine.tryLock({ wait: 20 })).toBeNull();
      await held.unlock();
      await (await over)?.unlock();
    }),
  );

  test(
    "beside a waiting caller whose holder has crashed says busy only once that caller has it",
    scene(async (world) => {
      const { mine, held, over } = await waiting(world, kind);
      let hasIt = false;
      void over.then((got) => {
        hasIt = got !== null;
      });
      world.redis.dropKey(KEYS[kind]);
      const lease = await mine.tryLock();
      await world.pass(BY_MESSAGE);
      // Of several locks it has the first one, and waits for the other.
      const hasFirst = kind === "multiLock" && world.redis.keys("x").includes(KEYS[kind]);
      expect(lease?.held ?? (hasIt || hasFirst)).toBe(true);
      await lease?.unlock();
      await held.unlock().catch(() => {});
      await (await over)?.unlock();
    }),
  );

  test.skipIf(kind === "election")(
    "does not say busy because of an expired lease of this process",
    scene(async (world) => {
      const { near, mine } = doors(world, kind);
      const lease = await mine.lock({ lease: 100 });
      const next = await near.does(() => {
        near.block(200);
        return mine.tryLock();
      });
      expect([lease.held, next?.held]).toEqual([false, true]);
      await next?.unlock();
    }),
  );

  test(
    "beside a caller that waits says busy again when Redis answers after it has hung",
    scene(async (world) => {
      const { near, mine, held, over } = await waiting(world, kind);
      near.freeze(STALL);
      expect(await outcomeOf(mine.tryLock())).toEqual(UNAVAILABLE);
      await world.pass(STALL);
      expect(await mine.tryLock({ wait: 1_000 })).toBeNull();
      await held.unlock();
      await (await over)?.unlock();
    }),
  );
});

describe.each(QUEUING)("%s", (kind) => {
  test(
    "throws while Redis hangs, also if the lock was handed to a caller here that has not received it yet",
    scene(async (world) => {
      const { near, far, mine, theirs } = doors(world, kind);
      await warm(world, near, far);
      const held = await theirs.lock();
      // Longer than the time for which it is handed on, so that it is claimed first.
      const next = mine.lock({ lease: 20_000 });
      await world.pass(50);
      near.commands.freeze(STALL);
      await held.unlock();
      await world.pass(BY_MESSAGE);
      expect(await outcomeOf(mine.tryLock())).toEqual(UNAVAILABLE);
      await (await next).unlock();
    }),
  );

  test.skipIf(kind === "readLock")(
    "throws while Redis hangs, also if the lock is being handed to another process",
    scene(async (world) => {
      const { near, far, mine, theirs } = doors(world, kind);
      await warm(world, near, far);
      const held = await mine.lock();
      const others = theirs.lock();
      await world.pass(50);
      const enough = new AbortController();
      const own = mine.lock({ signal: enough.signal }).catch(() => null);
      await world.pass(AFTER_LOCAL_HANDOFFS);
      near.freeze(STALL);
      const unlocked = held.unlock().catch(() => {});
      expect(await outcomeOf(mine.tryLock())).toEqual(UNAVAILABLE);
      enough.abort();
      await Promise.all([unlocked, others.then((lease) => lease.unlock())]);
      await (await own)?.unlock();
      await world.pass(STALL);
    }),
  );
});

const readLock = (client: LockClient): Lock => client.readWriteLock("x").read;
const writeLock = (client: LockClient): Lock => client.readWriteLock("x").write;
const lock = (client: LockClient): Lock => client.lock("x");
const fairLock = (client: LockClient): Lock => client.fairLock("x");

test.each([
  { late: "reader", first: "writer", lateLock: readLock, firstLock: writeLock, held: writeLock },
  { late: "writer", first: "reader", lateLock: writeLock, firstLock: readLock, held: writeLock },
  { late: "caller of lock", first: "one of fairLock", lateLock: lock, firstLock: fairLock, held: lock },
])(
  "a $late whose time ends while Redis hangs is told that, though a $first re-checks for both",
  ({ lateLock, firstLock, held }) =>
    scene(async (world) => {
      const [near, far] = world.processes(2);
      near.heard("error");
      const lease = await held(far.client).lock();
      const enough = new AbortController();
      const over = firstLock(near.client)
        .lock({ signal: enough.signal })
        .catch(() => null);
      await world.pass(50);
      const late = lateLock(near.client).lock({ wait: 7_000 });
      await world.pass(50);
      near.freeze(10_000);
      expect(await outcomeOf(late)).toEqual(UNAVAILABLE);
      enough.abort();
      await over;
      await world.pass(10_000);
      await lease.unlock();
    })(),
);

test(
  "tryLock() of a read lock and of its write lock says busy at once if callers of this process wait for both",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    const { read, write } = near.client.readWriteLock("x");
    const held = await far.client.readWriteLock("x").write.lock();
    const reading = read.lock();
    await world.pass(50);
    const writing = write.lock();
    await world.pass(50);
    for (const lock of [read, write, read, write]) {
      const { result, took } = await world.timed(lock.tryLock());
      expect([result, took < BY_MESSAGE]).toEqual([null, true]);
    }
    await held.unlock();
    await (await reading).unlock();
    await (await writing).unlock();
  }),
);

test(
  "runOnce() says that another call runs if Redis says so, and throws while Redis hangs",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    const options = { every: 60_000 };
    const begun = await far.client.runOnce("x", options, async () => {
      const beside = await near.client.runOnce("x", options, () => "ran");
      expect(beside).toMatchObject({ ran: false, running: true });
    });
    expect(begun.ran).toBe(true);
    near.freeze(STALL + 2_000);
    const calls = [1, 2].map(() => outcomeOf(near.client.runOnce("x", options, () => "ran")));
    expect(await Promise.all(calls)).toEqual([UNAVAILABLE, UNAVAILABLE]);
    await world.pass(STALL);
  }),
);
