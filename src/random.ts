// The only file with randomness.
import { randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";

/** `host:pid:random`: in Redis people read it as a holder or a waiter. Never repeats, also over restarts of the process. */
export function newClientId(): string {
  const host = hostname()
    .replace(/[^\w.-]/g, "_")
    .slice(0, 64);
  return `${host}:${process.pid}:${randomBytes(8).toString("hex")}`;
}

/** The client id that Redisson's owner names start with. */
export function newRedissonId(): string {
  return randomUUID();
}

/** 16 random bytes in hex: the id of one unlock request in Redisson's protocol. */
export function newRequestId(): string {
  return randomBytes(16).toString("hex");
}

/** A number from `low` to `high`. */
export function between(low: number, high: number): number {
  return low + Math.random() * (high - low);
}
