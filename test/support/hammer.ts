import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Lease, Lock } from "../../src/index.ts";

export interface HammerOptions {
  tasks: number;
  /** Acquisitions of each task. */
  rounds: number;
  /** Time inside the critical section in addition to its commands, in ms. */
  holdMs: number;
  /** A plain number that every critical section reads and writes back, plus one. */
  counterKey: string;
}

export interface HammerReport {
  acquisitions: number;
  /** How often another holder was inside: 0 for a lock. */
  overlaps: number;
  /** Leases that were lost before their unlock. */
  lost: number;
  /** In the order in which this process got them. */
  tokens: number[];
  /** ms from the request to the lock, one for each acquisition. */
  waits: number[];
}

const PATIENCE = 60_000;

/**
 * Many tasks take one lock repeatedly. Inside, each does what only a lock makes safe: it reads a
 * number and writes it back plus one. So `counterKey` ends as the number of acquisitions of all
 * processes.
 */
export async function hammer(redis: Redis, lock: Lock, options: HammerOptions): Promise<HammerReport> {
  const report: HammerReport = { acquisitions: 0, overlaps: 0, lost: 0, tokens: [], waits: [] };
  const task = async (_: unknown, task: number): Promise<void> => {
    for (let round = 0; round < options.rounds; round++) {
      const asked = performance.now();
      const lease = await lock.tryLock(PATIENCE);
      if (lease === null) throw new Error(`Waited ${PATIENCE} ms in vain for ${lock.name}`);
      report.waits.push(performance.now() - asked);
      report.tokens.push(lease.token);
      report.acquisitions += 1;
      if (!(await critical(redis, `${process.pid}:${task}:${round}`, options))) report.overlaps += 1;
      if (!(await released(lease))) report.lost += 1;
    }
  };
  await Promise.all(Array.from({ length: options.tasks }, task));
  return report;
}

/** Returns whether no other holder was inside. */
async function critical(redis: Redis, id: string, { counterKey, holdMs }: HammerOptions): Promise<boolean> {
  const marker = `${counterKey}:inside`;
  const isAlone = await enter(redis, marker, id);
  const number = Number((await redis.get(counterKey)) ?? 0);
  if (holdMs > 0) await delay(holdMs);
  await redis.set(counterKey, number + 1);
  if (isAlone) await redis.del(marker);
  return isAlone;
}

async function enter(redis: Redis, marker: string, id: string): Promise<boolean> {
  if ((await redis.set(marker, id, "NX")) !== null) return true;
  const inside = await redis.get(marker);
  if (inside === id) return true; // our own SET, sent again by ioredis after a reconnect
  if (inside === null || isAlive(Number.parseInt(inside, 10))) return false;
  await redis.set(marker, id); // left by a process that was killed inside
  return true;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function released(lease: Lease): Promise<boolean> {
  try {
    await lease.unlock();
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === "LockLostError") return false;
    throw error;
  }
}
