/**
 * A program that measures what one warm, uncontended `tryLock()` and `unlock()` pass in src, and prints it as JSON.
 *
 * Arguments: the URL of a Redis.
 */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { createLockClient } from "../../src/index.ts";
import { measurePassage } from "./coverage.ts";

const redis = new Redis(process.argv[2] ?? "");
const locks = createLockClient(redis);
const lock = locks.lock(`passage:${randomUUID()}`);
const pair = async (): Promise<void> => {
  const lease = await lock.tryLock();
  if (!lease) throw new Error("The lock is not free");
  await lease.unlock();
};
process.stdout.write(JSON.stringify(await measurePassage(pair, new URL("../../src/", import.meta.url))));
await locks.close();
redis.disconnect();
