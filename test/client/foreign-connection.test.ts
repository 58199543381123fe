import { afterAll, describe, expect, it } from "vitest";
import { fencedEval } from "../../src/fencing/index.ts";
import { createLockClient, type Lease, type LockClient, type NodeRedisLike } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { redissonLock } from "../../src/redisson.ts";
import { failure } from "../contract/observe.ts";
import { nodeRedisLike, onNodeRedis } from "../support/carrier.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { until } from "../support/until.ts";

// A connection whose methods were wrapped: they may throw where they should reject, answer twice, or
// never. The tests run side by side, because most of their time they wait. Those of ioredis's own
// methods are skipped where node-redis carries the locks.

const parties = new Parties();
const unhandled = trackUnhandled();
afterAll(async () => {
  await parties.close();
  await unhandled.assertNone().finally(unhandled.stop);
});

const onIoredis = onNodeRedis ? describe.skip : describe.concurrent;
const REPLY_TIMEOUT = 300;
const theirs = (): Error => new Error("theirs");

type Method = (...args: unknown[]) => unknown;

/** What a method does in the place of its work. */
const FAULTS: Readonly<Record<string, Method>> = {
  "throws an error": () => {
    throw theirs();
  },
  "throws what is no error": () => {
    throw "theirs";
  },
  rejects: () => Promise.reject(theirs()),
  "returns nothing": () => undefined,
  "returns what is no promise": () => 1,
  "never answers": () => new Promise(() => {}),
  "throws after its work is done": () => {
    throw theirs();
  },
};
const TWICE = "throws after its work is done";

async function joined(isPlain = false): Promise<Party> {
  const party = await parties.join({ client: { replyTimeout: REPLY_TIMEOUT } });
  if (!isPlain) return party;
  // Then `callBuffer` carries the commands, and not `sendCommand`.
  Object.assign(party.redis, { evalsha: party.redis.evalsha });
  const locks = createLockClient(party.redis, { replyTimeout: REPLY_TIMEOUT });
  await party.locks.close();
  return Object.assign(party, { locks });
}

/** Runs something while a method of the connection has a fault. */
async function faulty<T>(
  { redis }: Party,
  method: string,
  fault: string,
  work: () => Promise<T>,
): Promise<T> {
  const held = redis as unknown as Record<string, Method | undefined>;
  const own = Object.hasOwn(held, method) ? held[method] : undefined;
  const real = held[method]?.bind(redis);
  held[method] = (...args) => {
    if (fault === TWICE) real?.(...args);
    return FAULTS[fault]?.(...args);
  };
  try {
    return await work();
  } finally {
    if (own) held[method] = own;
    else delete held[method];
  }
}

/** How many connections hear when this lock of Redisson's kind may be free. */
const hearers = async ({ redis }: Party, name: string): Promise<number> =>
  Number((await redis.pubsub("NUMSUB", new Keys("", false).redissonChannel(name)))[1]);

/** Takes a lock without a fault; again where this machine was slower than REPLY_TIMEOUT. */
const taken = (locks: LockClient, name: string): Promise<Lease> =>
  until(async () => {
    try {
      return await locks.lock(name).lock({ wait: 20_000 });
    } catch (error) {
      isUnavailable(error);
      return null;
    }
  });

/** Takes a lock and gives it back, in the same way: no process holds it. */
async function checkFree(locks: LockClient, name: string): Promise<void> {
  const lease = await taken(locks, name);
  await lease.unlock().catch(isUnavailable);
}

const isUnavailable = (error: unknown): void => expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });

onIoredis.each([
  ["sendCommand", false],
  ["callBuffer", true],
] as const)("%s", (method, isPlain) => {
  it.each(Object.keys(FAULTS).filter((fault) => fault !== TWICE))(
    "%s: each call is refused once, with an error of this library",
    async (fault) => {
      const party = await joined(isPlain);
      const { locks } = party;
      const [name, other] = [freshName(), freshName()];
      const lease = await taken(locks, name);
      await faulty(party, method, fault, async () => {
        isUnavailable(await failure(locks.lock(other).tryLock()));
        isUnavailable(await failure(locks.lock(other).lock({ wait: 50 })));
        isUnavailable(await failure(locks.semaphore(other, { permits: 2 }).tryAcquire()));
        isUnavailable(await failure(locks.runOnce(other, { every: 60_000 }, () => {})));
        isUnavailable(await failure(locks.lock(other).isLocked()));
        isUnavailable(await failure(lease.extend(40_000)));
        isUnavailable(await failure(lease.unlock()));
      });
      // What it has asked for is taken back, and what it has unlocked goes.
      await checkFree(locks, other);
      await checkFree(locks, name);
    },
  );

  it("that throws after its work is done gives a call one answer", async () => {
    const party = await joined(isPlain);
    const { locks } = party;
    const name = freshName();
    await faulty(party, method, TWICE, async () => {
      isUnavailable(await failure(locks.lock(name).tryLock()));
    });
    await checkFree(locks, name);
  });

  it("that answers twice is heeded once", async () => {
    const party = await joined(isPlain);
    const { redis, locks } = party;
    const held = redis as unknown as Record<string, Method>;
    const real = held[method]?.bind(redis);
    held[method] = (...args) => {
      const sent = real?.(...args);
      const [call] = args as [{ resolve?: Method }];
      const { resolve } = call;
      if (typeof call === "object" && resolve)
        call.resolve = (reply) => {
          resolve(reply);
          resolve(reply);
        };
      return isPlain ? Promise.resolve(sent).then((reply) => reply) : sent;
    };
    await checkFree(locks, freshName());
    delete held[method];
  });
});

describe.concurrent.each([5, 6] as const)("sendCommand of node-redis %d", (version) => {
  /** Runs something while `sendCommand` has a fault. */
  async function faultyClient(
    fault: string,
    work: (locks: LockClient) => Promise<void>,
    before: (locks: LockClient) => Promise<void> = async () => {},
  ): Promise<LockClient> {
    const { redis } = await parties.join();
    const client = nodeRedisLike(redis, version) as unknown as { sendCommand: Method; isReady: boolean };
    await until(() => client.isReady, { what: "the node-redis client to be connected" });
    const locks = createLockClient(client as unknown as NodeRedisLike, { replyTimeout: REPLY_TIMEOUT });
    clients.push(locks);
    await before(locks);
    const real = client.sendCommand.bind(client);
    client.sendCommand = (...args) => {
      if (fault === TWICE) (real(...args) as Promise<unknown>).catch(() => {});
      return FAULTS[fault]?.(...args);
    };
    await work(locks);
    client.sendCommand = real;
    return locks;
  }
  const clients: LockClient[] = [];
  afterAll(async () => {
    for (const locks of clients.splice(0)) await locks.close({ grace: 0 });
  });

  it.each(Object.keys(FAULTS))(
    "%s: each call is refused once, with an error of this library",
    async (fault) => {
      const [name, other] = [freshName(), freshName()];
      let lease: Lease | undefined;
      const locks = await faultyClient(
        fault,
        async (locks) => {
          isUnavailable(await failure(locks.lock(other).tryLock()));
          isUnavailable(await failure(locks.lock(other).lock({ wait: 50 })));
          isUnavailable(await failure(locks.semaphore(other, { permits: 2 }).tryAcquire()));
          isUnavailable(await failure(locks.runOnce(other, { every: 60_000 }, () => {})));
          isUnavailable(await failure(locks.lock(other).isLocked()));
          isUnavailable(await failure(lease?.extend(40_000) ?? Promise.resolve()));
          isUnavailable(await failure(lease?.unlock() ?? Promise.resolve()));
        },
        async (locks) => {
          lease = await taken(locks, name);
        },
      );
      await checkFree(locks, other);
      await checkFree(locks, name);
    },
  );
});

onIoredis("the connection for messages", () => {
  it.each(["throws an error", "returns nothing", "rejects"])(
    "whose unsubscribe %s: the locks of its channels are released, and taken again",
    async (fault) => {
      const [party, other] = [await joined(), await parties.join()];
      const { redis } = party;
      const duplicate = redis.duplicate.bind(redis);
      let asked = 0;
      redis.duplicate = (options) => {
        const unsubscribe = (...args: unknown[]): unknown => {
          asked++;
          return FAULTS[fault]?.(...args);
        };
        return Object.assign(duplicate(options), { unsubscribe });
      };
      const name = freshName();
      for (let i = 0; i < 2; i++) {
        const held = await redissonLock(other.locks, name).lock();
        const waiting = redissonLock(party.locks, name).lock({ wait: 20_000 });
        await until(async () => (await hearers(other, name)) > 0);
        await held.unlock();
        await (await waiting).unlock();
      }
      await until(() => asked > 0, { what: "the channel to be left" });
      await (await redissonLock(other.locks, name).lock({ wait: 20_000 })).unlock();
    },
  );

  it.each(Object.keys(FAULTS))(
    "whose subscribe %s: a waiting caller gets the lock or an error, and nothing stays locked",
    async (fault) => {
      const [party, other] = [await joined(), await parties.join()];
      const { redis } = party;
      const duplicate = redis.duplicate.bind(redis);
      let asked = 0;
      redis.duplicate = (options) => {
        const copy = duplicate(options);
        const real = copy.subscribe.bind(copy) as Method;
        const subscribe: Method = (...args) => {
          asked++;
          if (fault === TWICE) (real(...args) as Promise<unknown>).catch(() => {});
          return FAULTS[fault]?.(...args);
        };
        return Object.assign(copy, { subscribe }) as typeof copy;
      };
      const name = freshName();
      const held = await other.locks.lock(name).lock();
      const waiting = party.locks.lock(name).lock({ wait: 10_000 });
      const got = waiting.catch((error: unknown) => error);
      await until(() => asked > 0, { what: "the channel to be subscribed to" });
      await held.unlock();
      const outcome = await got;
      if (outcome instanceof Error) isUnavailable(outcome);
      else await (outcome as Lease).unlock();
      await (await other.locks.lock(name).lock({ wait: 20_000 })).unlock();
    },
  );
});

onIoredis("duplicate", () => {
  it.each(["throws an error", "returns nothing", "returns what is no promise"])(
    "%s: a waiting caller gets an answer in time",
    async (fault) => {
      const party = await joined();
      const other = await parties.join();
      const name = freshName();
      const held = await other.locks.lock(name).lock();
      await faulty(party, "duplicate", fault, async () => {
        const waiting = party.locks.lock(name).lock({ wait: 400 });
        expect(["LOCK_UNAVAILABLE", "LOCK_TIMEOUT"]).toContain(
          ((await failure(waiting)) as { code: string }).code,
        );
      });
      await held.unlock();
      await checkFree(party.locks, name);
    },
  );
});

onIoredis("the connection that waits for replicas", () => {
  it.each(["returns nothing", "throws an error", "rejects"])(
    "whose WAIT %s: no caller gets the lock, and it is free",
    async (fault) => {
      const { redis } = await parties.join();
      const duplicate = redis.duplicate.bind(redis);
      redis.duplicate = (options) => {
        const copy = duplicate(options);
        const callBuffer = copy.callBuffer.bind(copy) as Method;
        const wait: Method = (...args) =>
          args[0] === "WAIT" ? FAULTS[fault]?.(...args) : callBuffer(...args);
        return Object.assign(copy, { callBuffer: wait }) as typeof copy;
      };
      const locks = createLockClient(redis, { replicas: 1, replyTimeout: REPLY_TIMEOUT });
      const name = freshName();
      await failure(locks.lock(name).lock({ wait: 200 }));
      const other = await parties.join();
      await (await other.locks.lock(name).lock({ wait: 20_000 })).unlock();
      await locks.close({ grace: 0 });
    },
  );
});

describe("evalsha", () => {
  it.each(["throws an error", "rejects", "returns nothing"])("%s: a fenced write rejects", async (fault) => {
    const party = await joined();
    await faulty(party, "evalsha", fault, async () => {
      expect(
        await failure(fencedEval(party.redis, "return 1", { keys: [freshName()], fence: 1 })),
      ).toBeInstanceOf(Error);
    });
  });
});
