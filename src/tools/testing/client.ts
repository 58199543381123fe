import { performance } from "node:perf_hooks";
import { ClientClosedError } from "../../api/errors.ts";
import { type CloseOptions, checkClientOptions } from "../../api/options.ts";
import { checkName, checkValue, type Rule, time } from "../../api/validate.ts";
import { redisServer } from "../../client/server.ts";
import { ServerClient } from "../../client/server-client.ts";
import type { Lock, LockClient, LockClientOptions, LossReason, UnfencedLease } from "../../index.ts";
import { redissonFencedLock, redissonLock } from "../../redisson.ts";
import { spinLock } from "../../spin.ts";
import { pause } from "../../util/abort.ts";
import { quote } from "../../util/quote.ts";
import { advance, ownClocks, type Timed } from "./advance.ts";
import { MemoryLink } from "./memory-link.ts";
import type { TestNetwork } from "./test-network.ts";
import { settled, TestProcess } from "./test-process.ts";

/**
 * The options of test locks: those of a client on Redis, except those about replicas and
 * connections.
 */
export interface TestLocksOptions
  extends Omit<LockClientOptions, "replicas" | "replicaTimeout" | "connection"> {
  /**
   * Where the client seems to run, for `inspect()`, `list()` and the page: a host and the number of a
   * process, such as "web-1:2041". Default: those of this process. `another()` has the default again.
   */
  readonly process?: string | undefined;
}

/** The kinds of locks that `busy` can hold. */
export type BusyKind = "lock" | "redissonLock" | "redissonFencedLock" | "spinLock" | "readLock" | "writeLock";

/** What a test has caused, until `undo()`, or until the block of an `await using` ends. */
export interface Undoable extends AsyncDisposable {
  /**
   * Ends it, and resolves when the consequences have happened. After the first call, or when the
   * client was closed or has crashed, it does nothing.
   */
  undo(): Promise<void>;
}

/** Events that a test can cause. */
export interface LockTests {
  /**
   * Makes another holder take a lock until it is undone: callers wait, and `tryLock()` gives null.
   * Then the next waiter gets it.
   *
   * @param name of the lock.
   * @param kind which of the locks of that name; "lock" is `fairLock`'s too. Default: "lock".
   * @throws Error when it is held already.
   * @example
   * await using other = await locks.test.busy("order:42");
   * expect(await locks.lock("order:42").tryLock()).toBe(null);
   */
  busy(name: string, kind?: BusyKind): Promise<Undoable>;

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
   * The process of this client dies, as by SIGKILL: nothing of it reaches Redis any more, its
   * connections are closed, and it neither renews nor releases what it holds. Other clients get its
   * locks when the leases end (`advance`). The code of the test goes on, so what waits in this client
   * rejects at once with ClientClosedError, as do later calls, and its leases are lost with the reason
   * "closed". Other clients, made before or after by `another()`, are not affected.
   *
   * @throws ClientClosedError after `close()` or `crash()`.
   * @example
   * const other = locks.test.another();
   * const lease = await other.lock("order:42").lock({ lease: 5_000 });
   * await other.test.crash();
   * console.log(lease.held, await locks.lock("order:42").tryLock()); // false null
   * await locks.test.advance(6_000);
   * await using next = await locks.lock("order:42").lock();
   */
  crash(): Promise<void>;

  /**
   * The process of this client is suspended until that is undone, as by SIGSTOP or in a long garbage
   * collection: its leases are not renewed, its waits do not end, replies and messages wait. Other
   * clients go on, also while the clock is advanced. Then it finds what happened meanwhile in the
   * order of a real process: leases that have ended are lost with the reason "expired", then what
   * was received, then its other timers.
   *
   * The code of the test goes on. The commands of calls that it makes meanwhile leave after
   * `undo()`. After several calls each one must be undone; `close()` undoes all.
   *
   * @throws ClientClosedError after `close()` or `crash()`.
   * @example
   * const lease = await locks.lock("order:42").lock({ lease: 5_000 });
   * const pause = await locks.test.pause();
   * await locks.test.advance(6_000);
   * await using next = await locks.test.another().lock("order:42").lock();
   * await pause.undo();
   * console.log(lease.signal.reason.reason); // "expired"
   */
  pause(): Promise<Undoable>;

  /**
   * This client loses its connections to Redis, and gets no others until that is undone: its calls
   * reject with LockUnavailableError when their time is over, and leases that cannot be renewed are
   * lost. Other clients go on. Then it reconnects by itself, at once.
   *
   * After several calls each one must be undone. `close()` meanwhile takes its `grace` if answers are
   * missing.
   *
   * @throws ClientClosedError after `close()` or `crash()`.
   * @example
   * const lease = await locks.lock("order:42").lock();
   * const cut = await locks.test.cut();
   * await locks.test.advance(30_000);
   * console.log(lease.held); // false
   * await cut.undo();
   * await using next = await locks.lock("order:42").lock();
   */
  cut(): Promise<Undoable>;

  /**
   * Delays each reply and message to this client, until it is set to 0. Time passes on the lock
   * clock: by itself, and by `advance`. What is under way arrives after this time at the latest.
   *
   * @param ms from 0.
   * @throws TypeError or RangeError for anything else; ClientClosedError after `close()` or `crash()`.
   * @example
   * locks.test.latency(200);
   * const taking = locks.lock("order:42").tryLock();
   * await locks.test.advance(500);
   * await using lease = await taking;
   * console.log(lease?.held); // true
   * locks.test.latency(0);
   */
  latency(ms: number): void;

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

const MS = time(0, undefined);
const PROCESS: Rule<string | undefined> = {
  wanted: 'a host and the number of a process, such as "web-1:2041"',
  fits: (value) => typeof value === "string" && /^[\w.-]{1,64}:[1-9]\d{0,9}$/.test(value),
  type: "string",
  fallback: undefined,
};

export class TestClient extends ServerClient implements TestLocks {
  readonly test: LockTests;
  readonly #process: TestProcess;

  constructor(network: TestNetwork, clients: Set<TestClient>, options: TestLocksOptions) {
    const barred = BARRED.find((name) => Object.hasOwn(options ?? {}, name));
    if (barred !== undefined)
      throw new TypeError(`Cannot create test locks: ${barred} has no meaning without a Redis`);
    const { process: runsAt, ...others } = options ?? {};
    const settings = checkClientOptions(options && others);
    if (runsAt !== undefined) checkValue("Cannot create test locks", "process", runsAt, PROCESS);
    ownClocks();
    const process = new TestProcess(network);
    const link = new MemoryLink(process);
    const server = redisServer(link, settings);
    const closed = (): void => {
      server.closed();
      // What it has sent without an answer gets none any more.
      if (process.isAway) link.close();
      clients.delete(this);
    };
    super({ ...server, closed, process: runsAt }, settings);
    clients.add(this);
    this.#process = process;
    const { timers: patient, watchdog } = this.locks;
    const own = { patient, impatient: watchdog.timers };
    const [stop, cut] = [
      switchOf(
        () => process.stop(own),
        () => process.go(),
      ),
      switchOf(
        () => process.cut(),
        () => process.mend(),
      ),
    ];
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
        checkValue("Cannot advance the clock", "ms", ms, MS);
        await advance(ms, () => [...clients].flatMap((client) => client.#timed));
      },
      crash: async () => {
        this.#mustBeOpen();
        process.die();
        // First: a body that ends must not try to release what it holds.
        for (const lease of [...watchdog.leases]) lease.lose("closed");
        await this.close({ grace: 0 });
      },
      pause: async () => {
        this.#mustBeOpen();
        return stop();
      },
      cut: async () => {
        this.#mustBeOpen();
        return cut();
      },
      latency: (ms) => {
        checkValue("Cannot set the latency", "ms", ms, MS);
        this.#mustBeOpen();
        process.latency = ms;
      },
      another: (more = {}) => new TestClient(network, clients, { ...others, ...more }),
    };
  }

  /** Another connection of its process to the Redis in memory. */
  connect(): MemoryLink {
    return new MemoryLink(this.#process);
  }

  override close(options?: CloseOptions): Promise<void> {
    this.#process.go();
    return super.close(options);
  }

  #mustBeOpen(): void {
    if (this.isClosed) throw new ClientClosedError(null);
  }

  /** What happens in its process at times of the clock. */
  get #timed(): readonly Timed[] {
    const { timers, watchdog } = this.locks;
    return this.#process.isStopped ? [] : [timers, watchdog.timers, this.#process];
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

/** What several calls may cause at a time, and what ends when all of them are undone. */
function switchOf(on: () => void, off: () => void): () => Promise<Undoable> {
  let count = 0;
  return async () => {
    if (count++ === 0) on();
    await settled();
    let isOver = false;
    const undo = async (): Promise<void> => {
      if (!isOver && --count === 0) off();
      isOver = true;
      await settled();
    };
    return { undo, [Symbol.asyncDispose]: undo };
  };
}

async function busy(locks: TestClient, name: string, kind: BusyKind): Promise<Undoable> {
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
