import { createLockClient } from "holdfast";
import { connect, prove, sleep, until } from "../support.ts";

const HOUR = 1_000; // ms: the shop is in a hurry
const redis = connect();
const key = `reports:${process.pid}`;

const sendReport = (_: AbortSignal): Promise<number> => redis.rpush(key, Date.now());

async function work(stopping: AbortSignal): Promise<number> {
  const redis = connect();
  let skipped = 0;
  // #region after
  const locks = createLockClient(redis); // one for each process

  /** Every process calls this by a timer, more often than the report is due. */
  async function tick(): Promise<void> {
    const options = { every: HOUR, aligned: true, lease: 60_000 };
    const { ran } = await locks.runOnce("report", options, (turn) => sendReport(turn.signal));
    if (!ran) skipped++; // another process sends it, or has sent it
  }
  // #endregion
  while (!stopping.aborted) {
    await tick();
    await sleep(20);
  }
  await locks.close();
  await redis.quit();
  return skipped;
}

const stopping = new AbortController();
const began = Date.now();
const workers = [work(stopping.signal), work(stopping.signal)];
await until("three reports", async () => (await redis.llen(key)) >= 3);
stopping.abort();
const [one = 0, other = 0] = await Promise.all(workers);
const count = await redis.llen(key);
const slots = Math.floor(Date.now() / HOUR) - Math.floor(began / HOUR) + 1;
prove(count <= slots, `at most one report for each hour: ${count} in ${slots}`);
prove(one > 0 && other > 0, "each worker skips the report of an hour that has one");
await redis.del(key);
await redis.quit();
