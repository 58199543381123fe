// Jobs of many tenants in one BullMQ queue: at most two jobs of a tenant run at a time, over all
// workers, and a tenant with a thousand jobs does not keep the others waiting.
//
// Needs a Redis: REDIS_URL, or redis://127.0.0.1:6379.
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { DelayedError, type Job, Queue, Worker } from "bullmq";
import { createLockClient, type LockClient } from "holdfast";
import { Redis } from "ioredis";

interface Export {
  readonly tenant: string;
}

const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const name = `exports-${process.pid}`;
/** BullMQ blocks its connections, and wants this option. The locks have a connection of their own. */
const connection = new Redis(url, { maxRetriesPerRequest: null });
const PER_TENANT = 2;

const running = new Map<string, number>();
const most = new Map<string, number>();

/** Stands for the work. */
async function exportOf({ tenant }: Export, signal: AbortSignal): Promise<void> {
  const now = (running.get(tenant) ?? 0) + 1;
  running.set(tenant, now);
  most.set(tenant, Math.max(most.get(tenant) ?? 0, now));
  await setTimeout(20, undefined, { signal });
  running.set(tenant, (running.get(tenant) ?? 1) - 1);
}

/** What runs in each process. */
function startWorker(locks: LockClient): Worker<Export> {
  const work = async (job: Job<Export>, token?: string): Promise<void> => {
    const places = locks.semaphore(`tenant:${job.data.tenant}`, { permits: PER_TENANT });
    await using permit = await places.tryAcquire();
    if (!permit) {
      // The tenant has its two: this worker takes another tenant's job, and this one comes again.
      await job.moveToDelayed(Date.now() + 50, token);
      throw new DelayedError();
    }
    // If this process dies, its permit comes back when its lease ends.
    await exportOf(job.data, permit.signal);
  };
  return new Worker<Export>(name, work, { connection, concurrency: 6 });
}

const queue = new Queue<Export>(name, { connection });
const redis = [new Redis(url), new Redis(url)];
const clients = redis.map((one) => createLockClient(one));
const workers = clients.map(startWorker);

const tenants = ["large", "large", "large", "large", "large", "large", "small", "tiny"];
const jobs = Array.from({ length: 40 }, (_, i) => ({
  name: "export",
  data: { tenant: tenants[i % 8] ?? "" },
}));
const finished = new Promise<void>((resolve) => {
  let left = jobs.length;
  for (const worker of workers) worker.on("completed", () => --left === 0 && resolve());
});
await queue.addBulk(jobs);
await finished;

console.log("most jobs of a tenant at a time:", Object.fromEntries(most));
assert.equal(Math.max(...most.values()), PER_TENANT);
assert.equal(await queue.getFailedCount(), 0, "a busy tenant is no failure");

await Promise.all(workers.map((worker) => worker.close()));
await queue.obliterate({ force: true });
await queue.close();
await Promise.all(clients.map((client) => client.close())); // before their connections
await Promise.all([...redis, connection].map((one) => one.quit()));
