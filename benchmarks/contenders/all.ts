import type { Contender } from "./contender.ts";
import { PERMITS } from "./ids.ts";

/**
 * All that are compared, in the order of tables and charts. Each loads its library when it is
 * opened: workers start fast.
 */
export const contenders: Readonly<Record<string, Contender>> = {
  lock: {
    title: "Holdfast lock",
    waits: "hand-off",
    open: async (url, place) => (await import("./holdfast.ts")).openLock(url, place),
  },
  "lock-node-redis": {
    title: "Holdfast lock, node-redis",
    waits: "hand-off",
    open: async (url, place) => (await import("./holdfast.ts")).openNodeRedisLock(url, place),
  },
  "lingering-lock": {
    title: "Holdfast lock, lingering",
    waits: "hand-off",
    open: async (url, place) => (await import("./holdfast.ts")).openLingeringLock(url, place),
  },
  "labelled-lock": {
    title: "Holdfast lock, with labels",
    waits: "hand-off",
    open: async (url, place) => (await import("./holdfast.ts")).openLabelledLock(url, place),
  },
  "fair-lock": {
    title: "Holdfast fairLock",
    waits: "hand-off",
    open: async (url, place) => (await import("./holdfast.ts")).openFairLock(url, place),
  },
  "redisson-lock": {
    title: "Holdfast redissonLock",
    waits: "broadcast",
    open: async (url, place) => (await import("./holdfast.ts")).openRedissonLock(url, place),
  },
  "read-write-lock": {
    title: "Holdfast readWriteLock",
    waits: "hand-off",
    room: Number.POSITIVE_INFINITY,
    open: async (url, place) => (await import("./holdfast.ts")).openReadWriteLock(url, place),
  },
  semaphore: {
    title: "Holdfast semaphore",
    waits: "hand-off",
    room: PERMITS,
    open: async (url, place) => (await import("./holdfast.ts")).openSemaphore(url, place),
  },
  "spin-1-128": {
    title: "spin 1–128 ms",
    waits: "spinning",
    open: async (url, place) => (await import("./article-spin-locks.ts")).openSpin1To128(url, place),
  },
  "spin-80": {
    title: "spin 80 ms",
    waits: "spinning",
    open: async (url, place) => (await import("./article-spin-locks.ts")).openSpin80(url, place),
  },
  "spin-10": {
    title: "spin 10 ms",
    waits: "spinning",
    open: async (url, place) => (await import("./article-spin-locks.ts")).openSpin10(url, place),
  },
  redlock: {
    title: "redlock 5 beta",
    waits: "polling",
    open: async (url, place) => (await import("./redlock.ts")).openRedlock(url, place),
  },
  redlock4: {
    title: "redlock 4.2",
    waits: "polling",
    open: async (url, place) => (await import("./redlock4.ts")).openRedlock4(url, place),
  },
  "redlock-universal": {
    title: "redlock-universal",
    waits: "polling",
    open: async (url, place) => (await import("./redlock-universal.ts")).openRedlockUniversal(url, place),
  },
  "redis-semaphore": {
    title: "redis-semaphore",
    waits: "polling",
    open: async (url, place) => (await import("./redis-semaphore.ts")).openRedisSemaphore(url, place),
  },
  "redis-semaphore-permits": {
    title: "redis-semaphore Semaphore",
    waits: "polling",
    room: PERMITS,
    open: async (url, place) => (await import("./redis-semaphore.ts")).openRedisSemaphorePermits(url, place),
  },
  "simple-redis-mutex": {
    title: "simple-redis-mutex",
    waits: "broadcast",
    open: async (url, place) => (await import("./simple-redis-mutex.ts")).openSimpleRedisMutex(url, place),
  },
  "node-redisson": {
    title: "node-redisson",
    waits: "broadcast",
    open: async (url, place) => (await import("./node-redisson.ts")).openNodeRedisson(url, place),
  },
  principle: {
    title: "principle (unsafe)",
    waits: "floor",
    open: async (url, place) => (await import("./principle.ts")).openPrinciple(url, place),
  },
  "floor-pair": {
    title: "floor: two scripts",
    waits: "floor",
    open: async (url, place) => (await import("./floor-pair.ts")).openFloorPair(url, place),
  },
  "floor-hop-and-ask": {
    title: "floor: hop and ask again",
    waits: "floor",
    open: async (url, place) => (await import("./floor-hop.ts")).openFloorHopAndAsk(url, place),
  },
  "floor-hop": {
    title: "floor: a token's hop",
    waits: "floor",
    open: async (url, place) => (await import("./floor-hop.ts")).openFloorHop(url, place),
  },
};
