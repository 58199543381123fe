/** A worker process of the shop: it serves its share of the orders, all at a time. See crew.ts for the other end. */
import { once } from "node:events";
import { countCommands } from "../tools/count-commands.ts";
import { connect } from "./connect.ts";
import type { Job, Report } from "./crew.ts";
import { guards } from "./guards.ts";
import { sellOne } from "./shop.ts";

async function work(job: Job): Promise<void> {
  const commands = countCommands();
  const redis = await connect(job.url);
  const guard = guards[job.way](redis, job.shop.lock);
  const waits: number[] = [];

  async function serve(order: number): Promise<void> {
    const asked = performance.now();
    await guard.run(async (token) => {
      const waited = performance.now() - asked;
      waits.push(waited);
      await sellOne(redis, job.shop, { order, worker: job.worker, token, waited: Math.round(waited) });
    });
  }

  report({ is: "ready" });
  await once(process, "message");
  const before = commands();
  await Promise.all(job.orders.map(serve));
  report({ is: "done", waits, sent: commands() - before });

  // What is sent for leaving must not be measured: wait for the word.
  await once(process, "message");
  await guard.close();
  await redis.quit();
  process.off("disconnect", abandon);
  process.disconnect();
}

function report(what: Report): void {
  process.send?.(what);
}

/** The demo is gone. Nobody wants these sales any more. */
function abandon(): never {
  process.exit(1);
}

// Ctrl-C reaches the whole process group; the demo ends its workers itself.
process.on("SIGINT", () => {});
process.on("disconnect", abandon);
if (!process.connected) abandon();

const { HOLDFAST_DEMO_JOB = "" } = process.env;
work(JSON.parse(HOLDFAST_DEMO_JOB)).catch((error: unknown) => {
  const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.send?.({ is: "failed", why } satisfies Report, abandon);
});
