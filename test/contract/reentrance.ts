import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { Lease, Lock, LockClient, LockClientOptions, LockOptions, MultiLease } from "../../src/index.ts";
import { until } from "../support/until.ts";
import { Queue } from "./drain-loops.ts";
import { failure, Gate, recordOf, tried } from "./observe.ts";
import type { Subject } from "./subject.ts";

const OFF = { reentrant: false };

/** Where the option is: of the client, or of one of the two callers, by its lock or by its call. */
interface Where {
  readonly client?: LockClientOptions;
  readonly body?: { readonly lock?: object; readonly call?: object };
  readonly stranger?: { readonly lock?: object; readonly call?: object };
}

const WHERE: Readonly<Record<string, Where>> = {
  "the client": { client: OFF },
  "the body's lock": { body: { lock: OFF } },
  "the body's call": { body: { call: OFF } },
  "the stranger's lock": { stranger: { lock: OFF } },
  "the stranger's call": { stranger: { call: OFF } },
  "the body's lock, though its client says true": { client: { reentrant: true }, body: { lock: OFF } },
  "the stranger's call, though its lock says true": {
    stranger: { lock: { reentrant: true }, call: OFF },
  },
};

/** What a caller has of a lock, and how it gives that back. */
interface Stay {
  readonly lease: Lease | MultiLease;
  leave(): Promise<unknown>;
}

/** The ways in which a stranger takes the lock, waiting for it. */
const WAYS: Readonly<Record<string, (lock: Lock, locks: LockClient, options: LockOptions) => Promise<Stay>>> =
  {
    "lock()": async (lock, _, options) => stayOf(await lock.lock(options)),
    "tryLock(wait)": async (lock, _, options) => stayOf(await lock.tryLock({ wait: 60_000, ...options })),
    "withLock()": (lock, _, options) => bodyOf((body) => lock.withLock(options, body)),
    "multiLock().lock()": async (lock, locks, options) => stayOf(await locks.multiLock([lock]).lock(options)),
    "multiLock().withLock()": (lock, locks, options) =>
      bodyOf((body) => locks.multiLock([lock]).withLock(options, body)),
  };

function stayOf(lease: Lease | MultiLease | null): Stay {
  if (!lease) throw new Error("Expected the lock, and it was busy");
  return { lease, leave: () => lease.unlock() };
}

/** Resolves when the body runs, which ends when it is told to. */
function bodyOf(run: (body: (lease: Lease | MultiLease) => Promise<void>) => Promise<unknown>) {
  return new Promise<Stay>((resolve, reject) => {
    const gate = new Gate();
    const body = run((lease) => {
      const leave = () => {
        gate.open();
        return body;
      };
      resolve({ lease, leave });
      return gate.passed;
    });
    body.catch(reject);
  });
}

/** Not every client has multi-locks. */
const waysOf = ({ isQuorum }: Subject): string[] =>
  Object.keys(WAYS).filter((way) => !(isQuorum && way.startsWith("multi")));

/**
 * `reentrant: false`, of the client, of a lock and of a call: either side of a meeting in one scope
 * can refuse it.
 */
export function reentrance(subject: Subject): void {
  /** One request is in a body, in whose context a loop runs the jobs of others. */
  async function meet({ client, body = {}, stranger = {} }: Where) {
    const party = client ? await subject.join(client) : subject.first;
    const { name, theirs } = subject.pair();
    const [inside, leaving] = [new Gate(), new Gate()];
    let inBody: (loop: () => void) => void = (loop) => loop();
    const queue = new Queue((loop) => inBody(loop));
    let token = 0;
    const over = subject.of(party, name, body.lock).withLock(body.call ?? {}, async (lease) => {
      inBody = AsyncLocalStorage.snapshot();
      token = lease.token;
      inside.open();
      await leaving.passed;
      return lease.held;
    });
    await Promise.race([inside.passed, over]);
    const told = recordOf(party.locks, [name]);
    const lock = subject.of(party, name, stranger.lock);
    return {
      ...{ name, theirs, told, token, lock, queue },
      /** A job of another request that takes the body's lock. */
      take: (way: string, options: LockOptions = {}): Promise<Stay> =>
        queue.ask(() =>
          (WAYS[way] as (typeof WAYS)[string])(lock, party.locks, { ...stranger.call, ...options }),
        ),
      attempt: () => queue.ask(() => lock.tryLock({ ...stranger.call })),
      /** Ends the body. Resolves with whether it had its lock to its end. */
      end: () => {
        leaving.open();
        return over;
      },
    };
  }

  describe.each(Object.entries(WHERE))("reentrant: false of %s", (_, where) => {
    for (const way of waysOf(subject)) {
      it(`a stranger's ${way} waits, and gives up before the body ends`, async () => {
        const { take, told, end, theirs } = await meet(where);
        const [enough, reason] = [new AbortController(), new Error("enough")];
        const waiting = failure(take(way, { signal: enough.signal }));
        await until(() => told.wait.length === 1, { what: "the stranger to wait" });
        enough.abort(reason);
        expect(await waiting).toBe(reason);
        expect([told.acquire, await end()]).toEqual([[], true]);
        await (await theirs.lock({ wait: 10_000 })).unlock();
      });

      it(`a stranger's ${way} gets the lock after the body ends, with a hold of its own`, async () => {
        const { take, told, end, theirs, lock, token, queue } = await meet(where);
        const waiting = take(way);
        await until(() => told.wait.length === 1, { what: "the stranger to wait" });
        expect(told.acquire).toEqual([]);
        expect(await end()).toBe(true);
        const { lease, leave } = await waiting;
        const { signal } = lease;
        expect([lease.held, told.acquire.length, await tried(theirs)]).toEqual([true, 1, null]);
        if (subject.tokens) expect(told.acquire[0]?.token).toBeGreaterThan(token);
        expect(await queue.ask(() => tried(lock))).toBe(null);
        await leave();
        expect([lease.held, signal.aborted]).toEqual([false, false]);
        expect([told.release.length, told.lost, told.error]).toEqual([2, [], []]);
        await (await theirs.lock({ wait: 10_000 })).unlock();
      });
    }

    it("a stranger's tryLock() finds it busy, each time", async () => {
      const { attempt, told, end } = await meet(where);
      expect([await attempt(), await attempt()]).toEqual([null, null]);
      expect(await end()).toBe(true);
      expect([told.acquire, told.error]).toEqual([[], []]);
    });
  });

  describe("reentrant: false", () => {
    it("of a call or a lock is overridden by a nearer true: the stranger enters the hold", async () => {
      for (const where of [
        { stranger: { lock: OFF, call: { reentrant: true } } },
        { client: OFF, body: { lock: { reentrant: true } }, stranger: { call: { reentrant: true } } },
      ]) {
        const { take, token, end, theirs } = await meet(where);
        const { lease, leave } = await take("lock()");
        expect("token" in lease ? lease.token : undefined).toBe(token);
        expect(await end()).toBe(true);
        await leave();
        await (await theirs.lock({ wait: 10_000 })).unlock();
      }
    });

    it("a body and a lease in it know that they hold the lock", async () => {
      const { locks } = await subject.join(OFF);
      const lock = subject.on(locks, subject.name());
      await lock.withLock(() => expect(lock.isHeldHere()).toBe(true));
      await locks.scope(async () => {
        const lease = await lock.lock();
        expect(lock.isHeldHere()).toBe(true);
        await lease.unlock();
        expect(lock.isHeldHere()).toBe(false);
      });
    });

    it("calls that one scope makes side by side get the lock one after the other", async () => {
      const { name, theirs } = subject.pair();
      const own = subject.of(subject.first, name);
      const told = recordOf(subject.first.locks, [name]);
      const foreign = await theirs.lock();
      await subject.first.locks.scope(async () => {
        const [first, entering] = [own.lock(), own.lock()];
        const others = [own.lock(OFF), own.withLock(OFF, () => null)];
        await until(() => told.wait.length === 4, { what: "four that wait" });
        await foreign.unlock();
        for (const lease of await Promise.all([first, entering])) await lease.unlock();
        for (const other of others) await (await other)?.unlock();
      });
      const entered = told.giveup.filter(({ why }) => why === "reentered").length;
      expect([told.acquire.length, entered]).toEqual([3, 1]);
    });
  });
}
