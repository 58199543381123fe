/** npm run bench:micro: what the client itself costs, without a Redis. */
import { Bench } from "tinybench";
import { createLockClient } from "../../src/index.ts";
import { decodeMessage } from "../../src/redis/messages.ts";
import { instantRedis } from "./instant-redis.ts";

const locks = createLockClient(instantRedis());
const lock = locks.lock("order:42");
const fairLock = locks.fairLock("order:42");
const GRANT =
  "grant 1790000000000000 1790000000000000 3000 host:4711:0123456789abcdef:42 holdfast:{order:42}";

/** Two callers: the second parks behind the first, and gets the lock when that one unlocks. */
async function parkAndPass(): Promise<void> {
  const [first, second] = [lock.lock(), lock.lock()];
  await (await first).unlock();
  await (await second).unlock();
}

const bench = new Bench({ time: 1_000, warmupTime: 500 })
  .add("tryLock and unlock", async () => {
    const lease = await lock.tryLock();
    await lease?.unlock();
  })
  .add("withLock", () => lock.withLock(() => {}))
  .add("fairLock: tryLock and unlock", async () => {
    const lease = await fairLock.tryLock();
    await lease?.unlock();
  })
  .add("park, wake and pass: two callers", parkAndPass)
  .add("decode a grant", () => void decodeMessage(GRANT));

await bench.run();
for (const task of bench.tasks) {
  const { result } = task;
  if (result.state !== "completed") throw new Error(`${task.name}: ${result.state}`);
  const micros = result.latency.p50 * 1_000;
  process.stdout.write(`${task.name.padEnd(34)}${micros.toFixed(2).padStart(8)} µs\n`);
}
await locks.close();
