// A program: what an acquisition and a waiter need of the client, as JSON. For node with the flags
// of needs.ts. Arguments: the URL of a Redis; the file URL of another commit's Holdfast, or nothing
// for the present one.
import { createHook } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Lock } from "../../src/index.ts";
import { loadLibrary } from "../contenders/library.ts";
import { heap } from "../workers/heap.ts";
import type { ProcessNeeds } from "./needs.ts";

const WARM_UP = 10_000;
const COUNTED = 1_000;
const CALLERS = 8;
const PARKED = 5_000;
/** ms between two looks at the heap, and the share by which they may differ when all have parked. */
const LOOK_EVERY = 500;
const SAME = 0.001;
const LONG = 600_000;
/**
 * Locks that are kept, so many asked for at a time, and ms until a client has dropped what it needs
 * only for those that are used.
 */
const KEPT = 1_000;
const AT_ONCE = 100;
const COLD = 600;
/** Looks in one round, of which there are some: the quickest counts. */
const LOOKS = 1_000_000;
const ROUNDS = 10;

const [url = "", library = null] = process.argv.slice(2);
const { createLockClient } = await loadLibrary(library);
const redis = new Redis(url);
const locks = createLockClient(redis);
const holder = createLockClient(new Redis(url));

/** Callers of one process that take turns: each acquisition but the first is a hand-off by Redis. */
async function contend(acquisitions: number): Promise<void> {
  const lock = locks.fairLock("contended");
  const loop = async (): Promise<void> => {
    for (let i = 0; i < acquisitions / CALLERS; i++) {
      const lease = await lock.lock();
      await lease.unlock();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, loop));
}

async function promises(): Promise<number> {
  let made = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === "PROMISE") made++;
    },
  }).enable();
  await contend(COUNTED);
  hook.disable();
  return made / COUNTED;
}

async function bytes(): Promise<number> {
  const before = heap();
  await contend(COUNTED);
  // Nothing was collected meanwhile: the young generation has more room than this.
  return (process.memoryUsage().heapUsed - before) / COUNTED;
}

/** Heap bytes of each caller that waits; its promise included, its signal not. */
async function parked(lock: Lock, name: string, signals: readonly AbortSignal[] | null): Promise<number> {
  const held = await holder.lock(name).lock();
  const park = (i: number): void => {
    const signal = signals?.[i];
    // They end with the process.
    void (signal ? lock.lock({ wait: LONG, signal }) : lock.lock());
  };
  park(0);
  const before = await settledHeap();
  for (let i = 1; i < PARKED; i++) park(i);
  const each = ((await settledHeap()) - before) / (PARKED - 1);
  if (!held.held) throw new Error("The lock was lost, and the callers do not wait any more");
  return each;
}

/** Heap bytes of each lock that stays with its process, unlocked. A commit that keeps none: NaN. */
async function kept(): Promise<number> {
  try {
    const keeper = createLockClient(new Redis(url), { linger: 1_500 });
    const take = async (name: string): Promise<void> => {
      const lease = await keeper.lock(name).tryLock();
      await lease?.unlock();
    };
    const takeAll = async (prefix: string): Promise<void> => {
      for (let i = 0; i < KEPT; i += AT_ONCE)
        await Promise.all(Array.from({ length: AT_ONCE }, (_, j) => take(`${prefix}:${i + j}`)));
    };
    while (keeper.stats().kept === 0) await take("kept");
    await takeAll("warm");
    while (keeper.stats().kept > 0) await delay(LOOK_EVERY);
    const before = heap();
    await takeAll("kept");
    await delay(COLD);
    return (heap() - before) / keeper.stats().kept;
  } catch {
    return Number.NaN;
  }
}

/** What each call does to learn that it is not followed, as src/runtime/lock-manager.ts has it. */
function look(): { look: number; lookBytes: number } {
  const [acquiring, holding] = [tracingChannel("holdfast:acquire"), tracingChannel("holdfast:hold")];
  let [least, seen] = [Number.POSITIVE_INFINITY, 0];
  const before = heap();
  for (let round = 0; round < ROUNDS; round++) {
    const from = process.hrtime.bigint();
    for (let i = 0; i < LOOKS; i++) if (acquiring.hasSubscribers || holding.hasSubscribers) seen++;
    least = Math.min(least, Number(process.hrtime.bigint() - from) / LOOKS);
  }
  if (seen > 0)
    throw new Error("Somebody subscribes to the channels: it is not the look alone that was measured");
  return { look: least, lookBytes: (process.memoryUsage().heapUsed - before) / (ROUNDS * LOOKS) };
}

/** The heap when nothing changes it any more: all have parked. */
async function settledHeap(): Promise<number> {
  let last = heap();
  for (;;) {
    await delay(LOOK_EVERY);
    const now = heap();
    if (Math.abs(now - last) < SAME * now) return now;
    last = now;
  }
}

await contend(WARM_UP);
const signals = (): AbortSignal[] => Array.from({ length: PARKED }, () => new AbortController().signal);
const needs: ProcessNeeds = {
  promises: await promises(),
  bytes: await bytes(),
  parked: await parked(locks.lock("p1"), "p1", null),
  parkedWithSignal: await parked(locks.lock("p2"), "p2", signals()),
  parkedFair: await parked(locks.fairLock("p3"), "p3", null),
  parkedFairWithSignal: await parked(locks.fairLock("p4"), "p4", signals()),
  kept: await kept(),
  ...look(),
};
process.stdout.write(JSON.stringify(needs), () => process.exit());
