import { DelayedError, type Job, Queue, Worker } from "bullmq";
import { createLockClient, type LockClient } from "holdfast";
import { Redis } from "ioredis";
import { connect, figure, prove, sleep, until } from "./support.ts";

interface Order {
  readonly customer: string;
}

const prefix = `recipe-${process.pid}`;
const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const connection = new Redis(url, { maxRetriesPerRequest: null }); // what BullMQ wants of its connections

const inside = new Map<string, number>();
let most = 0;
let mostOfOne = 0;
let done = 0;

async function handle({ customer }: Order, how: { signal: AbortSignal; fence: number }): Promise<void> {
  const ofThis = (inside.get(customer) ?? 0) + 1;
  inside.set(customer, ofThis);
  mostOfOne = Math.max(mostOfOne, ofThis);
  most = Math.max(
    most,
    [...inside.values()].reduce((sum, count) => sum + count, 0),
  );
  await sleep(30, undefined, how);
  inside.set(customer, ofThis - 1);
  done++;
}

function startWorker(locks: LockClient): Worker<Order> {
  // #region worker
  const work = async (job: Job<Order>, token?: string): Promise<void> => {
    await using lease = await locks.lock(`customer:${job.data.customer}`).tryLock();
    if (!lease) {
      // this customer is busy: leave the place to other jobs
      await job.moveToDelayed(Date.now() + 100, token);
      throw new DelayedError();
    }
    await handle(job.data, { signal: lease.signal, fence: lease.token });
  };
  const worker = new Worker<Order>("orders", work, { connection, prefix, concurrency: 4 });
  // #endregion
  return worker;
}

const queue = new Queue<Order>("orders", { connection, prefix });
const clients = [connect(), connect()].map((redis) => ({ redis, locks: createLockClient(redis) }));
const workers = clients.map(({ locks }) => startWorker(locks));
const failures: Error[] = [];
for (const worker of workers) worker.on("failed", (_, error) => failures.push(error));

for (let i = 0; i < 24; i++) await queue.add("order", { customer: String(i % 3) });
await until("all jobs are done", () => done === 24);
prove(mostOfOne === 1, "never two jobs of one customer at a time");
prove(most > 1, "jobs of different customers run side by side");
prove(failures.length === 0, "a busy customer is no failure");
figure("customers at work at once", `${most} of 3`);

await Promise.all(workers.map((worker) => worker.close()));
await queue.obliterate({ force: true });
await queue.close();
for (const { locks, redis } of clients) {
  await locks.close();
  await redis.quit();
}
await connection.quit();
