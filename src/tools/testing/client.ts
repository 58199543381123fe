import { performance } from "node:perf_hooks";
import { checkClientOptions } from "../../api/options.ts";
import { checkName, checkValue, type Rule, time } from "../../api/validate.ts";
import { redisServer } from "../../client/server.ts";
import { ServerClient } from "../../client/server-client.ts";
import type { Lock, LockClient, LockClientOptions, LossReason, UnfencedLease } from "../../index.ts";
import { redissonFencedLock, redissonLock } from "../../redisson.ts";
import { spinLock } from "../../spin.ts";
import { pause } from "../../util/abort.ts";
import { quote } from "../../util/quote.ts";
import { advance, ownClocks } from "./advance.ts";
import { MemoryLink } from "./memory-link.ts";
import type { TestNetwork } from "./test-network.ts";

/**
 * The options of test locks: those of a client on Redis, except those about replicas and
 * connections.
 */
export type TestLocksOptions = Omit<LockClientOptions, "replicas" | "replicaTimeout" | "connection">;

/** The kinds of locks that `busy` can hold. */
export type BusyKind = "lock" | "redissonLock" | "redissonFencedLock" | "spinLock" | "readLock" | "writeLock";

/** Another holder has it, until `undo()`. */
export interface Busy extends AsyncDisposable {
  /** Releases it: the next waiter gets it. */
  undo(): Promise<void>;
}

/** Events that a test can cause. */
export interface LockTests {
  /**
   * Makes another holder take a lock until it is undone: callers wait, and `tryLock()` gives null.
   *
   * @param name of the lock.
   * @param kind which of the locks of that name; "lock" is `fairLock`'s too. Default: "lock".
   * @throws Error when it is held already.
   * @example
   * await using other = await locks.test.busy("order:42");
   * expect(await locks.lock("order:42").tryLock()).toBe(null);
   */
  busy(name: string, kind?: BusyKind): Promise<Busy>;

  /**
   * Makes the holders of this name, of any kind, lose it, as when Redis has lost it: their signals
   * abort with a LockLostError (reason "gone"), and the next waiter gets it. Happens at once if it
   * is held, otherwise as soon as it is.
   *
   * @returns how many held it.
   * @throws Error when it was not held for 1 s of real time.
   * @example
   * const paying = payments.pay("42");
   * await locks.test.lose("order:42");
   * await expect(paying).rejects.toThrow(LockLostError);
   */
  lose(name: string): Promise<number>;

  /**
   * The same with the reason "expired": as when a process was paused for longer than its lease.
   *
   * @example
   * const paying = payments.pay("42");
   * await locks.test.expire("order:42");
   * await expect(paying).rejects.toThrow(LockLostError);
   */
  expire(name: string): Promise<number>;

  /**
   * Advances the clock: leases run out or are renewed, waits end, intervals pass, in the order in
   * which they are due. The clock is that of all lock clients of this process, and never goes back.
   * Timers of the application are not affected.
   *
   * @param ms from 0; 0 flushes pending work.
   * @returns a promise that resolves when what was due has happened.
   * @throws TypeError or RangeError for anything else.
   * @example
   * const lease = await locks.lock("order:42").lock({ lease: 5_000 });
   * await locks.test.advance(5_000);
   * console.log(lease.held); // false
   */
  advance(ms: number): Promise<void>;

  /**
   * Another client with the same locks, like that of another process. Close it too.
   *
   * @throws TypeError or RangeError for bad options.
   * @example
   * const [one, other] = [new Service(locks), new Service(locks.test.another())];
   */
  another(options?: TestLocksOptions): TestLocks;
}

/** The locks of one process without a Redis: everything that a `LockClient` has, and `test`. */
export interface TestLocks extends LockClient {
  readonly test: LockTests;
}

/** In ms of real time: the code under test may do other things first. */
const HELD_WITHIN = 1_000;

const KINDS = ["lock", "redissonLock", "redissonFencedLock", "spinLock", "readLock", "writeLock"] as const;
const BUSY: Rule<BusyKind> = {
  wanted: `one of ${KINDS.join(", ")}`,
  fits: (value) => KINDS.some((kind) => kind === value),
  fallback: "lock",
};

/** The options of a client that `TestLocksOptions` leaves out. */
const BARRED = ["replicas", "replicaTimeout", "connection"] as const;

const TO_ADVANCE = time(0, undefined);

export class TestClient extends ServerClient implements TestLocks {
  readonly test: LockTests;

  constructor(network: TestNetwork, clients: Set<TestClient>, options: TestLocksOptions) {
    const barred = BARRED.find((name) => Object.hasOwn(options ?? {}, name));
    if (barred !== undefined)
      throw new TypeError(`Cannot create test locks: ${barred} has no meaning without a Redis`);
    const settings = checkClientOptions(options);
    ownClocks();
    const server = redisServer(new MemoryLink(network), settings);
    const closed = (): void => {
      server.closed();
      clients.delete(this);
    };
    super({ ...server, closed }, settings);
    clients.add(this);
    this.test = {
      busy: async (name, kind = "lock") => {
        checkValue("Cannot make a lock busy", "kind", kind, BUSY);
        checkName(name);
        // Keys begin with the prefix, so its lock is that of the clients here.
        return busy(new TestClient(network, clients, { prefix: options.prefix }), name, kind);
      },
      lose: (name) => TestClient.#loseOf(clients, name, "gone"),
      expire: (name) => TestClient.#loseOf(clients, name, "expired"),
      advance: async (ms) => {
        checkValue("Cannot advance the clock", "ms", ms, TO_ADVANCE);
        await advance(ms, () =>
          [...clients].flatMap(({ locks: { timers, watchdog } }) => [timers, watchdog.timers]),
        );
      },
      another: (more = {}) => new TestClient(network, clients, { ...options, ...more }),
    };
  }

  static async #loseOf(clients: Iterable<TestClient>, name: string, reason: LossReason): Promise<number> {
    checkName(name, "Cannot lose a lock");
    for (const end = performance.now() + HELD_WITHIN; ; ) {
      const held = [...clients].flatMap((client) => [...client.locks.watchdog.leases]);
      const lost = held.filter((lease) => lease.name === name);
      // A client withdraws a lost lock by itself, so that the next waiter gets it.
      for (const lease of lost) lease.lose(reason);
      if (lost.length > 0) return lost.length;
      if (performance.now() > end) {
        const others = held.map((lease) => quote(lease.name)).join(", ");
        throw new Error(
          `Cannot lose ${quote(name)}: no caller holds it; what is held: ${others || "nothing"}`,
        );
      }
      await pause(1, undefined);
    }
  }
}

async function busy(locks: TestClient, name: string, kind: BusyKind): Promise<Busy> {
  const lease = await lockOf(locks, name, kind).tryLock();
  const undo = async (): Promise<void> => {
    // Whatever happened to it: a test may have lost it, or let it expire.
    await lease?.unlock().catch(() => {});
    await locks.close();
  };
  if (lease) return { undo, [Symbol.asyncDispose]: undo };
  await undo();
  throw new Error(`Cannot make ${quote(name)} busy: it is held already`);
}

function lockOf(locks: TestClient, name: string, kind: BusyKind): Lock<UnfencedLease> {
  if (kind === "readLock") return locks.readWriteLock(name).read;
  if (kind === "writeLock") return locks.readWriteLock(name).write;
  if (kind === "redissonLock") return redissonLock(locks, name);
  if (kind === "redissonFencedLock") return redissonFencedLock(locks, name);
  return kind === "spinLock" ? spinLock(locks, name) : locks.lock(name);
}
