// The only file with randomness.
import { randomBytes, randomUUID } from "node:crypto";
import { hostName } from "./host.ts";

/**
 * `[label/]host:pid:random`: shown to people as a holder or a waiter. Never repeats, even after
 * restarts of the process. `label`: one word; "": none. `process`: its `host:pid`.
 */
export function newClientId(label: string, process = thisProcess()): string {
  return `${label && `${label}/`}${process}:${randomBytes(8).toString("hex")}`;
}

function thisProcess(): string {
  const host = hostName()
    .replace(/[^\w.-]/g, "_")
    .slice(0, 64);
  return `${host}:${process.pid}`;
}

/** The client id that Redisson's owner names start with. */
export function newRedissonId(): string {
  return randomUUID();
}

/** 16 random bytes in hex: the id of one unlock request in Redisson's protocol. */
export function newRequestId(): string {
  return randomBytes(16).toString("hex");
}

/** Characters of a secret: each is one of 36 with a probability of 1/32 at most, so 64 bits at least. */
export const SECRET_LENGTH = 13;

/**
 * Several secrets, one after the other. Fresh: `randomUUID()` and `randomInt()` take theirs from a
 * pool, which a snapshot of the heap would copy.
 */
export function newSecrets(count: number): string {
  const characters = SECRET_LENGTH * count;
  const text = randomBytes(Math.ceil((characters * 6) / 8)).toString("base64");
  return text.slice(0, characters).toLowerCase().replaceAll("+", "8").replaceAll("/", "9");
}

/** Identifies a probe's message: no other client can know it before it is published. */
export function newNonce(): string {
  return randomBytes(8).toString("hex");
}

/** A number from `low` to `high`. */
export function between(low: number, high: number): number {
  return low + Math.random() * (high - low);
}

/**
 * The pause before the n-th further try (from 0): `least`, doubled each time up to `most`, plus or
 * minus `spread`.
 */
export function doubling(tries: number, least: number, most: number, spread: number): number {
  return Math.min(most, least * 2 ** Math.min(tries, 10)) * between(1 - spread, 1 + spread);
}
