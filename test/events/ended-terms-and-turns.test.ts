import { afterAll, describe, expect, it } from "vitest";
import { isLockLost, type LockClient, LockUnavailableError, type LossReason } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { failure, Gate, record } from "../contract/observe.ts";
import { block } from "../support/block.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// What test/contract/endings.ts has for locks, for the term of an election and the turn of a
// runOnce: whatever ends it, all that its caller can ask tells the same.

const parties = new Parties();
afterAll(parties.close);

/**
 * It is renewed after a third of it, which finds what became of it. Longer than a busy machine
 * stands still.
 */
const LEASE = 3_000;
const KEYS = new Keys("", false);

/** A term or a turn. */
interface Held {
  readonly signal: AbortSignal;
  readonly held: boolean;
  readonly remaining: number;
  assertHeld(): void;
}

/** `over`: what the caller is told when it gives it back, or its body ends. */
interface Taken {
  readonly held: Held;
  readonly over: () => Promise<unknown>;
}

interface Door {
  readonly key: (name: string) => string;
  /** What another process writes there when it takes it. */
  readonly usurped: string;
  take(locks: LockClient, name: string, lease: number): Promise<Taken>;
}

const DOORS: Readonly<Record<string, Door>> = {
  "a term": {
    key: (name) => KEYS.ofElection(name).lock,
    usurped: "10 7 somebody:1:0123456789abcdef:1",
    take: async (locks, name, lease) => {
      const term = await locks.election(name, { lease }).campaign();
      return { held: term, over: () => failure(term.resign()) };
    },
  },
  "a turn": {
    key: (name) => KEYS.ofOnce(name),
    usurped: "1r 1700000000000000 somebody",
    take: (locks, name, lease) =>
      new Promise((resolve, reject) => {
        const ends = new Gate();
        const call = locks.runOnce(name, { every: 3_600_000, lease }, (turn) => {
          resolve({ held: turn, over });
          return ends.passed;
        });
        const over = (): Promise<unknown> => {
          ends.open();
          return failure(call);
        };
        call.catch(reject);
      }),
  },
};

interface Ending {
  readonly reason: LossReason;
  /** How long it is taken for, in ms. */
  readonly lease?: number;
  end(party: Party, name: string, door: Door, lease: number): Promise<unknown> | undefined;
}

const ENDINGS: Readonly<Record<string, Ending>> = {
  "close()": { reason: "closed", end: ({ locks }) => locks.close({ grace: 0 }) },
  "the loss of its key": { reason: "gone", end: ({ redis }, name, { key }) => redis.del(key(name)) },
  "another holder": {
    reason: "taken",
    end: ({ redis }, name, { key, usurped }) => redis.set(key(name), usurped, "PX", 60_000),
  },
  "a blocked event loop": {
    reason: "expired",
    lease: 300,
    end(_party, _name, _door, lease) {
      block(lease + 50);
      return undefined;
    },
  },
};

async function tells(door: Door, ending: Ending, lease = ending.lease ?? LEASE): Promise<void> {
  const party = await parties.join();
  const name = freshName();
  const taken = await door.take(party.locks, name, lease).catch((error) => {
    // This machine stood still for longer than the lease before its caller had it.
    const isTooShort = isLockLost(error) || error instanceof LockUnavailableError;
    if (ending.lease && isTooShort && lease < 10_000) return null;
    throw error;
  });
  if (!taken) return tells(door, ending, 2 * lease);
  // Not before: a campaign goes on when another test has blocked it for longer than its lease.
  const told = record(party.locks);
  const { held, over } = taken;
  const { signal } = held;
  const ended = ending.end(party, name, door, lease);
  // Before any timer could ring.
  if (!ended) expect([held.held, held.remaining]).toEqual([false, 0]);
  await until(() => signal.aborted, { what: "the signal to abort" });
  const loss = signal.reason;
  expect(loss).toMatchObject({ code: "LOCK_LOST", lockName: name, reason: ending.reason });
  expect([held.held, held.remaining]).toEqual([false, 0]);
  expect(await over()).toBe(loss);
  expect(() => held.assertHeld()).toThrow(loss);
  await ended;
  expect(told.lost.map(({ error }) => error)).toEqual([loss]);
  expect(told.release).toEqual([]);
}

describe.concurrent.each(Object.entries(DOORS))("%s that is ended by", (_, door) => {
  it.each(Object.entries(ENDINGS))("%s: its signal, `held`, its end and `lost` agree", (_, ending) =>
    tells(door, ending),
  );
});
