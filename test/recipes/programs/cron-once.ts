import { once } from "node:events";
import { createLockClient } from "holdfast";
import { connect, figure, ms, prove, sleep, startProcess, until } from "./support.ts";

const redis = connect();
const locks = createLockClient(redis);
const every = 2_000;
const lease = 300;
const [, , role] = process.argv;

/** What is sent is noted. A process that is to die does so in the middle of it. */
async function sendReport(slot: number, { signal }: { signal: AbortSignal }): Promise<void> {
  if (role === "victim") {
    await redis.set("victim", slot);
    process.kill(process.pid, "SIGKILL");
  }
  signal.throwIfAborted();
  await redis.rpush("reports", `${slot} ${Date.now()}`);
}

// #region cron
/** Every process calls this, by a timer: one of them sends the report of each interval. */
async function tick(): Promise<void> {
  // A job of each hour: every: 3_600_000, lease: 10_000. After a crash no process runs it for `lease`.
  const options = { every, aligned: true, lease };
  const { ran, value } = await locks.runOnce("report", options, async (turn) => {
    const slot = turn.begin - (turn.begin % every); // the hour that it is for
    await sendReport(slot, { signal: turn.signal });
    return slot;
  });
  if (ran) console.log("sent the report of", new Date(value));
}
// #endregion

if (role !== undefined) {
  const stopping = new AbortController();
  process.once("SIGTERM", () => stopping.abort());
  console.log = () => {};
  while (!stopping.signal.aborted) {
    await tick();
    await sleep(role === "victim" ? 1 : 50);
  }
  await locks.close();
  await redis.quit();
  process.disconnect?.();
} else {
  await redis.del("reports", "victim");
  const fleet = [1, 2, 3].map(() => startProcess(import.meta.url, "process"));
  await until("some reports", async () => (await redis.llen("reports")) >= 2);
  await once(startProcess(import.meta.url, "victim"), "exit");
  const lost = Number(await redis.get("victim"));
  await until(
    "a later report",
    async () => Number((await redis.lindex("reports", -1))?.split(" ")[0]) > lost,
  );
  for (const child of fleet) child.kill("SIGTERM");
  await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
  const reports = (await redis.lrange("reports", 0, -1)).map((line) => line.split(" ").map(Number));
  const slots = reports.map(([slot]) => slot);
  prove(new Set(slots).size === slots.length, "no slot has two reports");
  const again = reports.find(([slot]) => slot === lost);
  prove(again !== undefined, "the slot in which a process died has its report too");
  figure("behind the beginning of the slot in which a process died", ms((again?.[1] ?? 0) - lost));
  await locks.close();
  await redis.quit();
}
