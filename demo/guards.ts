import type { Redis } from "ioredis";
import { createLockClient } from "../src/index.ts";
import { withSpinLock } from "./spin-lock.ts";

/** The three ways to sell, in the order in which the demo runs them. */
export const WAYS = ["no lock", "spin lock", "Holdfast"] as const;
export type Way = (typeof WAYS)[number];

/** What stands between an order and the stock. */
export interface Guard {
  /** Runs the body when it is this order's turn, with its fencing token if there is one. */
  run(body: (token: number | null) => Promise<unknown>): Promise<unknown>;
  close(): Promise<void>;
}

/** Longer than any run: nobody should leave the queue, so that all three ways serve the same orders. */
const WAIT_MS = 60_000;

/** One guard for each way; they differ in nothing but this. */
export const guards: Record<Way, (redis: Redis, name: string) => Guard> = {
  "no lock": () => ({
    run: (body) => body(null),
    close: async () => {},
  }),

  "spin lock": (redis, name) => ({
    run: (body) => withSpinLock(redis, name, () => body(null), { wait: WAIT_MS }),
    close: async () => {},
  }),

  Holdfast: (redis, name) => {
    const locks = createLockClient(redis);
    const lock = locks.lock(name);
    return {
      run: (body) => lock.withLock((lease) => body(lease.token), { wait: WAIT_MS }),
      close: () => locks.close(),
    };
  },
};
