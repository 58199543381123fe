import { once } from "node:events";
import { createLockClient } from "holdfast";
import { connect, figure, prove, seconds, sleep, startProcess } from "./support.ts";

const redis = connect();
const locks = createLockClient(redis);
const window = 300;

/** Notes when the call begins, by the clock of the Redis server. */
async function callProvider(_: string, { signal }: { signal: AbortSignal }): Promise<string> {
  const [second = 0, micro = 0] = (await redis.time()).map(Number);
  await redis.rpush("calls", `${second * 1_000 + micro / 1_000}`);
  await sleep(5, undefined, { signal });
  return "an answer";
}

// #region limit
/** At most five calls in any second, from all processes together, and so at most five at once. */
async function call(path: string): Promise<string> {
  const permits = locks.semaphore("provider", { permits: 5 });
  const lease = await permits.acquire({ wait: 10_000 });
  try {
    return await callProvider(path, { signal: lease.signal });
  } finally {
    const release = (): void => void lease.release().catch(() => {}); // failures are `error` events
    setTimeout(release, window); // 1_000: nobody but the provider knows when it counted the call
  }
}
// #endregion

if (process.argv[2] !== undefined) {
  await Promise.all(Array.from({ length: 10 }, () => call("/orders")));
  await locks.close();
  await redis.quit();
  process.disconnect?.();
} else {
  await redis.del("calls");
  const fleet = [1, 2, 3].map(() => startProcess(import.meta.url, "process"));
  await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
  const calls = (await redis.lrange("calls", 0, -1)).map(Number).sort((a, b) => a - b);
  prove(calls.length === 30, "every call is made");
  const gaps = calls.slice(5).map((at, i) => at - (calls[i] ?? 0));
  prove(Math.min(...gaps) > window - 5, `never six calls in one window: ${Math.min(...gaps)} ms`);
  figure("30 calls of 3 processes, 5 in 300 ms", seconds((calls.at(-1) ?? 0) - (calls[0] ?? 0)));
  await redis.del("calls");
  await locks.close();
  await redis.quit();
}
