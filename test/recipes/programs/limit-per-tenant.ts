import { once } from "node:events";
import { createLockClient } from "holdfast";
import { connect, figure, prove, sleep, startProcess } from "./support.ts";

const redis = connect();
const locks = createLockClient(redis);
const [, , role] = process.argv;

/** What may run so many times at a time for each tenant. */
async function render(tenant: string, { signal }: { signal: AbortSignal }): Promise<string> {
  const inside = await redis.incr(`inside:${tenant}`);
  await redis.lpush(`most:${tenant}`, inside);
  await sleep(5);
  signal.throwIfAborted();
  await redis.decr(`inside:${tenant}`);
  return "rendered";
}

// #region limit
/** At most three reports of a tenant at a time, over all processes; a large one counts as two. */
async function report(tenant: string, isLarge: boolean): Promise<string | null> {
  const slots = locks.semaphore(`reports:${tenant}`, { permits: 3 });
  await using lease = await slots.tryAcquire(isLarge ? 2 : 1, { wait: 5_000 });
  if (!lease) return null; // 429: this tenant has enough to do
  // With `await`: a promise that is only returned would leave the block, and give the permits back,
  // while it renders.
  return await render(tenant, { signal: lease.signal });
}
// #endregion

if (role !== undefined) {
  for (let i = 0; i < 40; i++) await Promise.all(["a", "b"].map((tenant) => report(tenant, i % 4 === 0)));
  await locks.close();
  await redis.quit();
  process.disconnect?.();
} else {
  await redis.del("inside:a", "inside:b", "most:a", "most:b");
  const fleet = [1, 2, 3, 4, 5].map(() => startProcess(import.meta.url, "process"));
  await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
  for (const tenant of ["a", "b"]) {
    const seen = (await redis.lrange(`most:${tenant}`, 0, -1)).map(Number);
    prove(seen.length === 200, "every report was rendered");
    prove(Math.max(...seen) <= 3, "never more than three reports of a tenant at a time");
  }
  figure("reports of two tenants by five processes", "400");
  await locks.close();
  await redis.quit();
}
