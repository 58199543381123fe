import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease, Lock, PassingOptions } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { watchTraffic } from "../contract/observe.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { until } from "../support/until.ts";

// How often a lock is passed on inside a process, by lock, by client and by kind.

const parties = new Parties();
let a: Party;
let b: Party;

beforeAll(async () => {
  [a, b] = [await parties.join(), await parties.join()];
  // Each has its subscriber before anything is counted.
  for (const { locks } of [a, b]) {
    const lease = await locks.lock(freshName()).lock();
    await locks.lock(lease.name).tryLock(50);
    await lease.unlock();
  }
});
afterAll(parties.close);

type Kind = "lock" | "redissonLock" | "spinLock";

/**
 * Takes the lock by one object, and waits for it by two others of the same process. Returns the
 * commands of the second hand-over: the first one of a lock for which nobody waited asks Redis for
 * its token.
 */
async function handOver(party: Party, holder: Lock, next: Lock): Promise<number> {
  const lease = await holder.lock();
  let waiting = 2;
  const [first, second] = [next, holder].map(async (lock) => {
    const lease = await lock.lock();
    waiting--;
    return lease;
  });
  await party.redis.ping();
  expect(waiting).toBe(2);
  await lease.unlock();
  const between = await first;
  const traffic = watchTraffic(party);
  const before = traffic.commands;
  await between?.unlock();
  const last = await second;
  const commands = traffic.commands - before;
  await last?.unlock();
  return commands;
}

/**
 * A pass needs no command. It happens only within 25 ms, so on a busy machine several tries may be
 * needed.
 */
async function passes(party: Party, make: () => readonly [Lock, Lock]): Promise<boolean> {
  for (let attempt = 0; attempt < 30; attempt++) {
    const [holder, next] = make();
    if ((await handOver(party, holder, next)) === 0) return true;
  }
  return false;
}

const pair =
  (party: Party, kind: Kind, holder?: PassingOptions, next = holder) =>
  (): readonly [Lock, Lock] => {
    const name = freshName();
    return [lockOf(party.locks, kind, name, holder), lockOf(party.locks, kind, name, next)];
  };

describe("by default", () => {
  it.each(["lock", "spinLock"] as const)("%s is handed off inside the process", async (kind) => {
    expect(await passes(a, pair(a, kind))).toBe(true);
  });

  it.each(["redissonLock", "redissonFencedLock", "fairLock"] as const)(
    "%s is not, because others would wait longer",
    async (kind) => {
      for (let i = 0; i < 5; i++) {
        const lock = lockOf(a.locks, kind, freshName());
        expect(await handOver(a, lock, lock)).toBeGreaterThan(0);
      }
    },
  );
});

describe("tokens for local hand-offs", () => {
  /** No other test moves the clock of this prefix. */
  const prefix = `${freshName()}:`;
  let own: Party;
  let other: Party;

  beforeAll(async () => {
    own = await parties.join({ client: { prefix } });
    other = await parties.join({ client: { prefix } });
  });

  /** How far the clock of tokens is ahead of a lease's. */
  async function reserved({ token }: Lease): Promise<number> {
    const [clock = ""] = await own.redis.keys(`${prefix}*clock*`);
    return Number(await own.redis.get(clock)) - token;
  }

  it("are not reserved by a caller for which nobody waits here", async () => {
    await own.locks.lock("a").withLock(async (lease) => expect(await reserved(lease)).toBe(0));
  });

  it("are reserved for a lock that may be cached", async () => {
    const lock = own.locks.lock("b", { linger: 1_000 });
    await lock.withLock(async (lease) => expect(await reserved(lease)).toBe(48));
  });

  it("are reserved by the entry of a caller that waits", async () => {
    const held = await other.locks.lock("c").lock();
    const waiting = own.locks.lock("c").lock();
    await own.redis.ping();
    await held.unlock();
    const lease = await waiting;
    expect(await reserved(lease)).toBe(16);
    await lease.unlock();
  });
});

describe("localHandoffs of a client", () => {
  it.each(["lock", "redissonLock", "spinLock"] as const)("counts for %s", async (kind) => {
    const some = await parties.join({ client: { localHandoffs: 4 } });
    const none = await parties.join({ client: { localHandoffs: 0 } });
    expect(await passes(some, pair(some, kind))).toBe(true);
    for (let i = 0; i < 5; i++) expect(await handOver(none, ...pair(none, kind)())).toBeGreaterThan(0);
  });
});

describe("localHandoffs of a lock", () => {
  const none = { localHandoffs: 0 };
  const some = { localHandoffs: 16 };

  it.each(["lock", "redissonLock", "spinLock"] as const)("counts for %s", async (kind) => {
    expect(await passes(a, pair(a, kind, some))).toBe(true);
    for (let i = 0; i < 5; i++) expect(await handOver(a, ...pair(a, kind, none)())).toBeGreaterThan(0);
  });

  it.each(["lock", "redissonLock", "spinLock"] as const)(
    "of %s: between two callers with different numbers the smaller one counts",
    async (kind) => {
      for (let i = 0; i < 5; i++) {
        expect(await handOver(a, ...pair(a, kind, none, some)())).toBeGreaterThan(0);
        expect(await handOver(a, ...pair(a, kind, some, none)())).toBeGreaterThan(0);
      }
    },
  );

  it("counts if the lock is a member of a multi-lock that waits", async () => {
    for (let i = 0; i < 5; i++) {
      const name = freshName();
      const lease = await a.locks.lock(name).lock();
      const waiting = a.locks.multiLock([a.locks.lock(name, none)]).lock();
      await a.redis.ping();
      const traffic = watchTraffic(a);
      const before = traffic.commands;
      await lease.unlock();
      const multi = await waiting;
      expect(traffic.commands - before).toBeGreaterThan(0);
      await multi.unlock();
    }
  });

  it("of different numbers for one name exclude each other, and are one lock to a scope", async () => {
    const name = freshName();
    const [one, other] = [a.locks.lock(name, none), a.locks.lock(name, some)];
    await one.withLock(async () => {
      expect(other.isHeldHere()).toBe(true);
      expect(await b.locks.lock(name).tryLock()).toBe(null);
      await other.withLock(() => {});
    });
    expect(a.locks.multiLock([one, other]).names).toEqual([name]);
  });

  it("never break the order of tokens, whatever the numbers of callers side by side and of other processes", async () => {
    const name = freshName();
    // A prefix of its own: other tests of this server would get no tokens by this clock.
    const prefix = `${name}:`;
    const [one, other] = [
      await parties.join({ client: { prefix } }),
      await parties.join({ client: { prefix } }),
    ];
    // Ahead of the server's time, so that each token is the one after the last that was reserved.
    const ahead = (Date.now() + 3_600_000) * 1_000;
    await one.redis.set(`${prefix}holdfast:clock`, ahead);
    const tokens: number[] = [];
    const take = async (lease: Lease): Promise<void> => {
      tokens.push(lease.token);
      if (tokens.length % 7 === 0) await other.redis.ping();
    };
    const work = Array.from({ length: 200 }, (_, i) => {
      const party = i % 5 === 0 ? other : one;
      return party.locks
        .lock(name, { localHandoffs: [0, 1, 2, 16, 1_000][i % 5 === 0 ? 4 : i % 4] })
        .withLock(take);
    });
    await Promise.all(work);
    expect(tokens).toEqual([...tokens].sort((x, y) => x - y));
    expect(new Set(tokens).size).toBe(200);
    expect(tokens[0]).toBeGreaterThan(ahead);
  });

  it.each([-1, 1.5, 1_001, "8", null, true])("are refused: %s", async (localHandoffs) => {
    const message = "Cannot create a lock: localHandoffs must be a whole number from 0 to 1000, received";
    for (const kind of ["lock", "redissonLock", "spinLock"] as const)
      expect(() => lockOf(a.locks, kind, "x", { localHandoffs: localHandoffs as number })).toThrow(message);
  });

  it("are among the refused unknown options, and refused by kinds that have none", () => {
    const { locks } = a;
    const bad = { passes: 1 } as PassingOptions;
    for (const [call, known] of [
      [() => locks.lock("x", bad), "localHandoffs, reentrant, linger"],
      [() => redissonLock(locks, "x", bad), "localHandoffs, reentrant"],
      [() => spinLock(locks, "x", bad), "prefix, localHandoffs, reentrant"],
    ] as const)
      expect(call).toThrow(
        new TypeError(`Cannot create a lock: unknown option 'passes'; known are ${known}`),
      );
    expect(() => locks.lock("x", 5 as PassingOptions)).toThrow(TypeError);
    const fairLock = locks.fairLock as (name: string, options: unknown) => Lock;
    expect(() => fairLock.call(locks, "x", some)).toThrow(
      new TypeError(
        "Cannot create a lock: localHandoffs must be left out: a fairLock has no local hand-offs, or its order would not hold, received 16",
      ),
    );
    const fenced = redissonFencedLock as (...args: unknown[]) => Lock;
    expect(() => fenced(locks, "x", some)).toThrow(
      "localHandoffs must be left out: every holder of a redissonFencedLock needs",
    );
  });

  it("are not an option of a lock of several masters", async () => {
    const quorum = createQuorumClient([a.redis, b.redis, a.redis.duplicate({ lazyConnect: true })]);
    const lock = quorum.lock as (name: string, options?: unknown) => Lock;
    expect(() => lock.call(quorum, "x", some)).toThrow(
      new TypeError(
        "Cannot create a lock: localHandoffs must be left out: for several masters it is an option of the client, or there is none, received 16",
      ),
    );
    await quorum.close();
  });

  it("give every waiter its turn, and leave nothing behind", async () => {
    const name = freshName();
    let turns = 0;
    const numbers = [0, 3, 0, 16, 1, 0];
    await Promise.all(
      numbers.flatMap((localHandoffs) =>
        [a, b].map(({ locks }) =>
          locks.lock(name, { localHandoffs }).withLock(async () => {
            turns++;
            await a.redis.ping();
          }),
        ),
      ),
    );
    expect(turns).toBe(2 * numbers.length);
    await until(async () => !(await a.locks.lock(name).isLocked()), { what: "the lock to be free" });
  });
});
