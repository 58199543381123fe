import type { Writable } from "node:stream";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { Redis } from "ioredis";
import type { SubscriberLike } from "../../src/api/redis.ts";
import { type BaseLease, createLockClient, type LockClient, type MultiLease } from "../../src/index.ts";
import { unref } from "../../src/redis/ioredis/connection.ts";
import { redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { openConnection } from "../support/servers/connection.ts";
import { keep, LINGERING } from "../support/stays.ts";
import type { Ending, ExitOrder, Held } from "./exit-stage.ts";

// A program that holds one of each kind, or keeps it, and ends. `ExitProgram` starts it.

type GiveBack = () => void;

/** Holds it, and returns how to give it back: by a call that nobody waits for. */
const takers: Record<
  Held,
  (name: string, locks: LockClient, redis: Redis) => Promise<GiveBack | readonly GiveBack[]>
> = {
  lock: async (name, locks) => givesBack(await locks.lock(name, { linger: 0 }).lock()),
  "waited for here": async (name, locks) => {
    const lock = locks.lock(name, { linger: 0 });
    const lease = await lock.lock();
    lock.lock().catch(() => {});
    return givesBack(lease);
  },
  fairLock: async (name, locks) => givesBack(await locks.fairLock(name).lock()),
  spinLock: async (name, locks) => givesBack(await spinLock(locks, name).lock()),
  redissonLock: async (name, locks) => givesBack(await redissonLock(locks, name).lock()),
  multiLock: async (name, locks) => givesBack(await locks.multiLock([`${name}/a`, `${name}/b`]).lock()),
  readers: async (name, locks) => {
    const { read } = locks.readWriteLock(name, { linger: 0 });
    return (await Promise.all([read.lock(), read.lock()])).map(givesBack);
  },
  writer: async (name, locks) => givesBack(await locks.readWriteLock(name).write.lock()),
  permits: async (name, locks) => givesBack(await locks.semaphore(name, { permits: 3 }).acquire(2)),
  "permits waited for here": async (name, locks) => {
    const slots = locks.semaphore(name, { permits: 3 });
    const leases = await Promise.all([slots.acquire(), slots.acquire(), slots.acquire()]);
    slots.acquire().catch(() => {});
    return leases.map(givesBack);
  },
  pooled: async (name, locks) => {
    const slots = locks.semaphore(name, { permits: 3 });
    return (await Promise.all([slots.acquire(), slots.acquire(), slots.acquire()])).map(givesBack);
  },
  term: async (name, locks) => {
    const term = await locks.election(name).campaign();
    return () => void term.resign().catch(() => {});
  },
  "taken again": async (name, locks, redis) => {
    await keep({ locks, redis }, name);
    return givesBack(await locks.lock(name).lock());
  },
  kept: async (name, locks, redis) => {
    await keep({ locks, redis }, name);
    return [];
  },
  "kept reads": async (name, locks) => {
    await keepReads(name, locks);
    return [];
  },
  "reads taken again": async (name, locks) => {
    await keepReads(name, locks);
    return givesBack(await locks.readWriteLock(name).read.lock());
  },
};

async function keepReads(name: string, locks: LockClient): Promise<void> {
  const { read } = locks.readWriteLock(name);
  const before = locks.stats().kept;
  while (locks.stats().kept === before) await (await read.lock()).unlock();
}

const givesBack =
  (lease: BaseLease | MultiLease): GiveBack =>
  () =>
    void lease[Symbol.asyncDispose]().catch(() => {});

async function run({ address, prefix, ending, held, isApart }: ExitOrder): Promise<void> {
  const redis = openConnection(address, { connectionName: prefix }) as Redis;
  const locks = createLockClient(redis, LINGERING);
  // What this connection has run is sent by its hash when the process ends: else the texts are more
  // than Redis reads at once.
  if (held.length > 2)
    await (await locks.readWriteLock(`${prefix}before`, { linger: 0 }).read.lock()).unlock();
  // What the client sends when it has subscribed may be written in the last turn, and nothing else would be.
  if (held.length <= 2) await locks.check();
  const all: GiveBack[] = [];
  for (const one of held) {
    const gives = await takers[one](`${prefix}${one}`, locks, redis);
    all.push(...(Array.isArray(gives) ? gives : [gives as GiveBack]));
  }
  const giveAll = (): void => {
    // In one write: Redis reads no more of a process that has ended when it cannot write a reply to it.
    const { stream } = redis as unknown as { stream: Writable };
    if (!isApart) stream.cork();
    for (const give of all) give();
    if (!isApart) stream.uncork();
  };
  if (ending === "late handler" || ending === "error" || ending === "worker" || ending === "nothing left")
    process.on("exit", giveAll);
  if (ending === "late handler" || ending === "worker") {
    // In the turn of several replies, whose callers may send a command yet: those would be written together.
    await Promise.all([1, 2, 3].map(() => locks.lock(`${prefix}asked`).isLocked()));
    process.exit(0);
  }
  if (ending === "error")
    setImmediate(() => {
      throw new Error("nobody catches this");
    });
  if (ending === "nothing left") process.exitCode = 3;
  if (ending === "beforeExit") process.once("beforeExit", giveAll);
  if (ending === "nothing left" || ending === "beforeExit") unref(redis as unknown as SubscriberLike);
  if (ending === "reply") {
    await redis.ping();
    giveAll();
    process.exit(0);
  }
  if (ending === "close") {
    giveAll();
    await locks.close();
    process.exit(0);
  }
  if (ending === "timer")
    setTimeout(() => {
      giveAll();
      process.exit(0);
    }, 1);
  if (ending === "worker of a process that ends") parentPort?.postMessage("holds");
}

const isInWorker = (ending: Ending): boolean => ending.startsWith("worker");

function start(order: ExitOrder): void {
  if (!isMainThread || !isInWorker(order.ending)) {
    run(order).catch((error: unknown) => {
      console.error(error);
      process.exitCode = 9;
    });
    return;
  }
  const thread = new Worker(new URL(import.meta.url), { workerData: order, argv: process.argv.slice(2) });
  thread.once("message", () => process.exit(0));
}

start(isMainThread ? JSON.parse(process.argv[2] ?? "") : workerData);
