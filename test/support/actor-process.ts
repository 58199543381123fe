import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import {
  createLockClient,
  type Lease,
  type LockClient,
  type OnceOptions,
  type RememberOptions,
  type Term,
} from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { nodeRedisLike } from "./carrier.ts";
import { type Target, type WriterName, writers } from "./fenced-writers.ts";
import { type HammerOptions, hammer } from "./hammer.ts";
import { lockOf, type Maker } from "./permit.ts";
import { callOnce } from "./runs.ts";
import { type Address, addressOf, openConnection } from "./servers/connection.ts";
import { keep } from "./stays.ts";
import { StopWatch } from "./stop-watch.ts";
import { turnOf } from "./turn.ts";

export type LockKind = Exclude<Maker, "permit" | "readLock" | "writeLock">;

export type ActorOptions = ({ url: string } & Settings) | ({ address: Address } & Settings);

interface Settings {
  /** Options of ioredis that a message can carry: no functions. */
  redis?: Record<string, unknown>;
  /** The library that carries its locks. Default: ioredis. */
  library?: "ioredis" | "node-redis";
  /** Options of `createLockClient`. */
  client?: Record<string, unknown>;
}

export interface Failure {
  name: string;
  message: string;
  code?: unknown;
  reason?: unknown;
}

export type Answer = { id: number; result: unknown } | { id: number; failure: Failure };

interface Call {
  id: number;
  method: keyof ActorMethods;
  args: unknown[];
}

export type ActorMethods = typeof methods;

interface Session {
  redis: Redis;
  /** The other masters of a quorum. */
  others: Redis[];
  locks: LockClient;
}

let session: Session | undefined;
const leases: Lease[] = [];
const watches = new Map<number, StopWatch>();

/** The commands of an actor; a handle refers to a lease, also after its unlock. */
const methods = {
  async start({ redis: options, client, library = "ioredis", ...where }: ActorOptions) {
    const address = "url" in where ? addressOf(where.url) : where.address;
    // a Cluster has all the methods that are used here
    const redis = openConnection(address, options) as Redis;
    const others = (address.masters ?? []).map(
      (one) => openConnection({ ...address, redis: one }, options) as Redis,
    );
    // Of a quorum, the methods used here are the same.
    const locks = (
      others.length > 0
        ? createQuorumClient([redis, ...others], { restartDelay: 0, ...client })
        : createLockClient(library === "ioredis" ? redis : nodeRedisLike(redis, 6), client)
    ) as LockClient;
    session = { redis, others, locks };
    await once(redis, "ready"); // rejects on the first error
  },

  /** `token`: for a permit the number that Redis has for it. */
  async acquire(kind: Maker, name: string, wait?: number, lease?: number) {
    const acquired = await lockOf(current().locks, kind, name).tryLock(wait, lease);
    return acquired && { handle: leases.push(acquired) - 1, token: turnOf(acquired) };
  },

  /** A candidate that appends its token to a list while it leads; the call does not wait for it. */
  async runAsLeader(name: string, lease: number, list: string) {
    const { redis, locks } = current();
    const work = async (leading: Term): Promise<void> => {
      while (leading.held) {
        await redis.rpush(list, leading.token);
        await sleep(5);
      }
    };
    locks
      .election(name, { lease })
      .runAsLeader({ value: `${process.pid}` }, work)
      .catch(() => {});
  },

  /** Holds one lock, and requests a second one when that is held too. Returns the outcome. */
  async nest(first: string, second: string) {
    const { locks } = current();
    const started = performance.now();
    const body = async (): Promise<string> => {
      while (!(await locks.lock(second).isLocked())) await sleep(5);
      return locks.lock(second).withLock(() => "both");
    };
    const became = await locks
      .lock(first)
      .withLock(body)
      .catch((error) => error.code);
    return { became, took: performance.now() - started };
  },

  /** A plain command that bypasses the locks. */
  command: (name: string, ...args: string[]) => current().redis.call(name, ...args),

  unlock: (handle: number) => leaseOf(handle).unlock(),

  /**
   * Exits in the turn in which callers that share a hold have unlocked, before anything is read.
   * The server knows the script: a script written then is not sent again. This is never answered.
   */
  async unlockSharedExiting(kind: "read" | "semaphore", name: string) {
    const { locks } = current();
    const slots = locks.semaphore(name, { permits: 3 });
    const take = () => (kind === "read" ? locks.readWriteLock(name).read.lock() : slots.acquire());
    await (await take())[Symbol.asyncDispose]();
    for (const lease of await Promise.all([take(), take(), take()])) void lease[Symbol.asyncDispose]();
    process.exit();
  },

  async unlockAndExit(handle: number) {
    await leaseOf(handle).unlock();
    process.exit();
  },

  /**
   * Makes sure that it holds the lock, is stopped just before its write, and writes as soon as it
   * continues.
   */
  async writeAfterStop(handle: number, how: WriterName, target: Target, value: string) {
    const lease = leaseOf(handle);
    lease.assertHeld();
    process.kill(process.pid, "SIGSTOP");
    await writers[how](current().redis, target, value, lease.token);
  },

  /** Its body ends when this key exists; `stops`: the process is stopped just before the body returns. */
  remember: (name: string, options: RememberOptions, value: string, key: string, stops = false) =>
    current().locks.remember(name, options, async () => {
      while (!(await current().redis.exists(key))) await sleep(5);
      if (stops) process.kill(process.pid, "SIGSTOP");
      return value;
    }),

  hammer: (kind: Maker, name: string, options: HammerOptions) =>
    hammer(current().redis, lockOf(current().locks, kind, name), options),

  /** Takes the lock and gives it back until this process keeps it with no caller inside. */
  keep: (name: string, often?: number) => keep(current(), name, often),

  /** Exits by itself once this is answered. */
  die(how: "exit" | "throw") {
    setImmediate(() => {
      if (how === "exit") process.exit();
      throw new Error("nobody catches this");
    });
  },

  /**
   * Calls `redis.quit()` without `locks.close()`, and exits. The server's statistics begin with that.
   * This is never answered.
   */
  async quitAndExit() {
    const { redis } = current();
    void redis.config("RESETSTAT");
    await redis.quit();
    process.exit();
  },

  watchStop(handle: number) {
    watches.set(handle, new StopWatch(leaseOf(handle)));
  },

  stopReport: (handle: number) => watches.get(handle)?.report ?? null,

  /**
   * Three callers that call `once` repeatedly for this many ms; returns when its bodies began, by
   * the server's clock.
   */
  callOnce: (name: string, options: OnceOptions, pause: number, ms: number) =>
    callOnce(current().locks, name, options, pause, ms),

  async close() {
    const { redis, others, locks } = current();
    await locks.close({ grace: 0 });
    for (const one of [redis, ...others]) one.disconnect();
  },
};

function current(): Session {
  if (session === undefined) throw new Error("The actor was not started");
  return session;
}

function leaseOf(handle: number): Lease {
  const lease = leases[handle];
  if (lease === undefined) throw new Error(`No lease has the handle ${handle}`);
  return lease;
}

async function answer({ id, method, args }: Call): Promise<void> {
  try {
    const run = methods[method] as (...args: unknown[]) => unknown;
    send({ id, result: await run(...args) });
  } catch (error) {
    send({ id, failure: failureOf(error) });
  }
}

function send(message: Answer): void {
  process.send?.(message);
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message } = error;
  return {
    name,
    message,
    ...("code" in error && { code: error.code }),
    ...("reason" in error && { reason: error.reason }),
  };
}

process.on("message", (call: Call) => void answer(call));
process.on("disconnect", () => process.exit()); // the parent has gone, or is done
