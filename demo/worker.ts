/**
 * A worker process of the shop: it serves its share of the orders, all at a time. See crew.ts for
 * the other end.
 */
import { once } from "node:events";
import { isLockLost } from "../src/index.ts";
import { countCommands } from "../tools/redis/count-commands.ts";
import { connect } from "./connect.ts";
import type { Job } from "./crew.ts";
import { report, workAs } from "./member.ts";
import { chargeCustomer, sellOne } from "./shop.ts";
import { guardOf } from "./strategies.ts";

async function work(job: Job): Promise<void> {
  const commands = countCommands();
  const redis = await connect(job.url);
  const quorum = await Promise.all(job.quorum.map((node) => connect(node)));
  const guard = guardOf(job.strategy, { ...job, redis, quorum });
  const waits: number[] = [];
  let charges = 0;
  let refused = 0;
  let isAwake = !job.naps;

  async function charge(order: number): Promise<void> {
    charges++;
    await chargeCustomer(order);
    if (isAwake) return;
    // Between reading and writing: the demo stops this process here, and lets it go on when others have sold.
    isAwake = true;
    report({ is: "about to write" });
    await once(process, "message");
  }

  async function serve(order: number): Promise<void> {
    const asked = performance.now();
    let waited = 0;
    let sold: boolean | null = null;
    while (sold === null) {
      const sell = guard.serve(async (till) => {
        waited = performance.now() - asked;
        sold = await sellOne(till, order, job.worker, () => charge(order));
        return sold;
      });
      await sell.catch((error: unknown) => {
        if (!isLockLost(error)) throw error;
        // The lock was lost on the way. If the shop took the sale all the same, it is sold; else
        // the order comes again.
        if (sold === null) refused++;
      });
    }
    waits.push(waited);
  }

  report({ is: "ready" });
  await once(process, "message");
  const before = commands();
  const [first, ...others] = job.orders;
  // The worker that is stopped holds one lock, and has no further places in the queue.
  if (job.naps && first !== undefined) await serve(first);
  await Promise.all((job.naps ? others : job.orders).map(serve));
  report({ is: "done", waits, sent: commands() - before, charges, refused });

  // What is sent for leaving must not be measured: wait for the word.
  await once(process, "message");
  await guard.close();
  await Promise.all([redis, ...quorum].map((connection) => connection.quit()));
}

workAs<Job>(work);
