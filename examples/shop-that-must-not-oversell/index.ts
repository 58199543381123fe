// Four processes sell the last 100 tickets to 400 buyers. Without a lock they sell more than there
// are; with one they sell each ticket once, in the order of the receipts.
//
// If all that changes is one number in Redis, a command does this alone (DECR and a check). Here a
// sale reads the stock, asks a service, and then writes two things.
//
// Needs a Redis: REDIS_URL, or redis://127.0.0.1:6379.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { createLockClient } from "holdfast";
import { fencedEval } from "holdfast/fencing";
import { Redis } from "ioredis";

const [, , role, way = "", run = `shop:{${process.pid}}`] = process.argv;
const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const [stock, receipts] = [`${run}:stock`, `${run}:receipts`];

/** True: sold. */
async function sell(write: (left: number) => Promise<void>): Promise<boolean> {
  const left = Number(await redis.get(stock));
  if (left === 0) return false;
  await setTimeout(1); // the price, the seat, the voucher
  await write(left - 1);
  return true;
}

/** No lock: what others have sold since the read is sold again. */
const unlocked = (): Promise<boolean> =>
  sell(async (left) => {
    await redis.multi().set(stock, left).rpush(receipts, left).exec();
  });

/** One sale at a time, in any process. */
const SALE = `redis.call("SET", KEYS[1], ARGV[1]); return redis.call("RPUSH", KEYS[2], ARGV[1])`;
const locks = createLockClient(redis);
const locked = (): Promise<boolean> =>
  locks.lock(run).withLock((lease) =>
    sell(async (left) => {
      // Redis refuses this if a process was paused, its lock is lost, and another one sells: the
      // token of this lease is smaller than what was seen.
      const [keys, args] = [[stock, receipts], [left]];
      await fencedEval(redis, SALE, { keys, args, fence: lease.token, resource: run });
    }),
  );

if (role === "seller") {
  const buyers = Array.from({ length: 100 }, way === "locked" ? locked : unlocked);
  const sold = (await Promise.all(buyers)).filter(Boolean).length;
  await locks.close(); // before its connection
  await redis.quit();
  process.send?.(sold);
  process.disconnect?.();
} else {
  for (const way of ["unlocked", "locked"]) {
    await redis.del(receipts);
    await redis.set(stock, 100);
    const sellers = Array.from({ length: 4 }, () => fork(new URL(import.meta.url), ["seller", way, run]));
    for (const one of sellers) one.once("exit", (code) => code && process.exit(code));
    const sold = await Promise.all(sellers.map(async (one) => Number((await once(one, "message"))[0])));
    const total = sold.reduce((sum, one) => sum + one);
    const left = await redis.lrange(receipts, 0, -1);
    console.log(`${way}: ${total} of 100 tickets sold, by process ${sold.join(", ")}`);
    if (way === "unlocked") assert.ok(total > 100, "without a lock it oversells");
    else {
      assert.equal(total, 100);
      assert.deepEqual(
        left.map(Number),
        Array.from({ length: 100 }, (_, i) => 99 - i),
      );
    }
  }
  await redis.del(stock, receipts);
  await locks.close();
  await redis.quit();
}
