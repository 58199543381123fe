import { expect, it } from "vitest";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { carrierOf, onNodeRedis } from "../support/carrier.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";

// A connection that has lost a reply answers each command with the reply to the next one. CLIENT
// REPLY does that to a connection that the application shares with its locks. Whatever the next
// reply is, no caller gets a lock that another client holds: it fails, or finds the lock busy.

const own = new OwnServer();

const EVERY = { every: 3_600_000 };

type Locks = Party["locks"];
interface Held {
  readonly held: boolean;
}

/** One call that does not wait. Null: another client holds it. */
const tries: Record<string, (locks: Locks, name: string) => Promise<Held | null>> = {
  lock: (locks, name) => locks.lock(name).tryLock(),
  fairLock: (locks, name) => locks.fairLock(name).tryLock(),
  "read lock": (locks, name) => locks.readWriteLock(name).read.tryLock(),
  "write lock": (locks, name) => locks.readWriteLock(name).write.tryLock(),
  semaphore: (locks, name) => locks.semaphore(name, { permits: 1 }).tryAcquire(),
  spinLock: (locks, name) => spinLock(locks, name).tryLock(),
  redissonLock: (locks, name) => redissonLock(locks, name).tryLock(),
  redissonFencedLock: (locks, name) => redissonFencedLock(locks, name).tryLock(),
  multiLock: (locks, name) => locks.multiLock([locks.lock(name), locks.lock(`${name}:2`)]).tryLock(),
  election: (locks, name) =>
    locks
      .election(name)
      .campaign({ wait: 0 })
      .catch((error: { code?: string }) => {
        if (error.code === "LOCK_TIMEOUT") return null;
        throw error;
      }),
  runOnce: async (locks, name) => {
    const outcome = await locks.runOnce(name, EVERY, () => {});
    return outcome.ran ? { held: true } : null;
  },
};

/** The next command on the connection, whose reply answers the try. */
const followers: Record<string, (send: Send, mine: Mine) => unknown> = {
  "a PING": (send) => send("PING"),
  "a GET of nothing": (send) => send("GET", "none"),
  "a GET of a number": (send) => send("GET", "number"),
  "a GET of a text": (send) => send("GET", "text"),
  "a SET": (send) => send("SET", "other", "1"),
  "an INCR": (send) => send("INCR", "count"),
  TIME: (send) => send("TIME"),
  "an EVAL that returns 1": (send) => send("EVAL", "return 1", "0"),
  "an EVAL that returns { 1, 2 }": (send) => send("EVAL", "return { 1, 2 }", "0"),
  "an EVAL that returns { 1, 2, 3, 4 }": (send) => send("EVAL", "return { 1, 2, 3, 4 }", "0"),
  "a release of another lock": (_, { lease }) => lease.unlock(),
  "a renewal of another lock": (_, { lease }) => lease.extend(60_000),
  "an inspection": (_, { locks }) => locks.lock("inspected").inspect(),
  "a forced release": (_, { locks }) => locks.lock("forced").forceUnlock(),
};
type Send = (...words: string[]) => Promise<unknown>;
interface Mine {
  readonly locks: Locks;
  readonly lease: { unlock(): Promise<void>; extend(ms: number): Promise<void> };
}

/** Only the caller's own calls are awaited here: what else is answered wrongly is no matter. */
const ignored = (promise: unknown): void => void Promise.resolve(promise).catch(() => {});

/** A client whose connection answers each command with the reply to the next one, from `shift()`. */
async function shiftable() {
  const { redis, locks } = await own.parties.join({ url: own.url, client: { replyTimeout: 500 } });
  locks.on("error", () => {});
  const lease = await locks.lock(freshName("mine")).lock();
  const carrier = carrierOf(redis) as Partial<Record<"call" | "sendCommand", Send>>;
  const send: Send = (...words) =>
    onNodeRedis
      ? (carrier.sendCommand as unknown as (words: string[]) => Promise<unknown>).call(carrier, words)
      : redis.call(...(words as [string]));
  const shift = (): void => {
    // The first of these gets no reply, and so the reply to the second.
    ignored(send("CLIENT", "REPLY", "OFF"));
    ignored(send("CLIENT", "REPLY", "ON"));
  };
  return { locks, lease, send, shift };
}

/** Another client holds it until the result is called. */
async function holdElsewhere(kind: string, name: string): Promise<() => Promise<unknown>> {
  const { locks } = await own.parties.join({ url: own.url });
  if (kind !== "runOnce") {
    expect((await tries[kind]?.(locks, name))?.held).toBe(true);
    return async () => {};
  }
  // A turn lasts as long as its body.
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  let run: Promise<unknown> = Promise.resolve();
  await new Promise<void>((begun) => {
    run = locks.runOnce(name, EVERY, () => {
      begun();
      return ended;
    });
  });
  return () => {
    end();
    return run;
  };
}

it.each(Object.entries(tries))(
  "%s: no caller gets it by the reply to another command",
  async (kind, take) => {
    await own.admin.mset("number", "17", "text", "free", "count", "5");
    const cases = [];
    for (const [follower, next] of Object.entries(followers)) {
      const name = freshName();
      const end = await holdElsewhere(kind, name);
      cases.push({ follower, next, name, end, mine: await shiftable() });
    }
    // Most of their time they wait.
    const outcomes = await Promise.all(
      cases.map(async ({ follower, next, name, end, mine }) => {
        mine.shift();
        const asked = take(mine.locks, name).then(
          (got) => (got === null ? "busy" : "got it"),
          (error: { code?: string }) => error.code,
        );
        ignored(next(mine.send, mine));
        const outcome = await asked;
        await end();
        return `${follower}: ${outcome}`;
      }),
    );
    expect(outcomes.filter((outcome) => !/: (busy|LOCK_UNAVAILABLE)$/.test(outcome))).toEqual([]);
  },
);
