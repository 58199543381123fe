import { afterAll, afterEach, describe, expect, it } from "vitest";
import { fencedEval } from "../../src/fencing/index.ts";
import { createLockClient } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";

// A connection whose methods somebody has wrapped: they may throw where they should reject, answer
// twice, or never.

const parties = new Parties();
const unhandled = trackUnhandled();
afterEach(async () => {
  await parties.close();
  await unhandled.assertNone();
});
afterAll(() => unhandled.stop());

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

const isUnavailable = (error: unknown): void => expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });

describe.each([
  ["sendCommand", false],
  ["callBuffer", true],
] as const)("%s", (method, isPlain) => {
  it.each(Object.keys(FAULTS).filter((fault) => fault !== TWICE))(
    "%s: each call is refused once, with an error of the library",
    async (fault) => {
      const party = await joined(isPlain);
      const { locks } = party;
      const [name, other] = [freshName(), freshName()];
      const lease = await locks.lock(name).lock();
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
      await (await locks.lock(other).lock({ wait: 20_000 })).unlock();
      await (await locks.lock(name).lock({ wait: 20_000 })).unlock();
    },
  );

  it("throws after its work is done: a call has one answer", async () => {
    const party = await joined(isPlain);
    const { locks } = party;
    const name = freshName();
    await faulty(party, method, TWICE, async () => {
      isUnavailable(await failure(locks.lock(name).tryLock()));
    });
    await (await locks.lock(name).lock({ wait: 20_000 })).unlock();
  });

  it("an answer that comes twice counts once", async () => {
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
    await (await locks.lock(freshName()).lock()).unlock();
    delete held[method];
  });
});

describe("duplicate", () => {
  it.each(["throws an error", "returns nothing", "returns what is no promise"])(
    "%s: a caller that waits gets an answer in time",
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
      const lease = await party.locks.lock(name).lock({ wait: 20_000 });
      await lease.unlock();
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
