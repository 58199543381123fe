import type { Redis } from "ioredis";
import { serverIs } from "./server-version.ts";

/**
 * Arguments for a server on which `sleep()` is to work. Redis before 7.0 does not know them, and
 * needs none.
 */
export const ALLOW_DEBUG = serverIs("7.0") ? ["--enable-debug-command", "local"] : [];

/**
 * Makes a server answer no client for this many ms (CLIENT PAUSE); "WRITE" lets reads pass. Scripts
 * that may write count as writes. Keys do not expire meanwhile. The promise resolves when the pause
 * has begun.
 *
 * @example
 * await pauseClients(admin, 500);
 * await redis.get("a"); // takes half a second
 */
export async function pauseClients(admin: Redis, ms: number, mode: "ALL" | "WRITE" = "ALL"): Promise<void> {
  await admin.call("CLIENT", "PAUSE", `${ms}`, mode);
}

/** Ends the pause; commands sent meanwhile are answered. */
export async function unpauseClients(admin: Redis): Promise<void> {
  await admin.call("CLIENT", "UNPAUSE");
}

/**
 * When a key ends, in ms of the server's wall clock. At the same moment the server stops writing,
 * so no renewal can move that end before the test suspends the server; until `unpauseClients`.
 */
export async function freezeEndOf(key: string, admin: Redis): Promise<number> {
  const answers = await admin
    .multi()
    .call("CLIENT", "PAUSE", "600000", "WRITE")
    .call("PEXPIRETIME", key)
    .exec();
  return Number(answers?.[1]?.[1]);
}

/**
 * Makes a server do nothing at all for this many ms (DEBUG SLEEP), like a slow command of another
 * client: it neither reads nor expires keys. Needs a server that was launched with {@link
 * ALLOW_DEBUG}.
 *
 * @example
 * const server = await launchServer({ args: ALLOW_DEBUG });
 * const awake = sleep(admin, 500);
 * await redis.get("a"); // takes half a second, or what is left of it
 * await awake;
 */
export async function sleep(admin: Redis, ms: number): Promise<void> {
  await admin.call("DEBUG", "SLEEP", `${ms / 1_000}`);
}
