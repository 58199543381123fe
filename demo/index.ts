/**
 * npm run demo: a shop sells 200 pieces from 4 processes, by every strategy that the command line
 * asks for; or stays open.
 */
import { constants } from "node:os";
import { findRedis, launchServer, type RedisServer, serverCommand } from "../tools/redis/index.ts";
import { buildWorker } from "./build-worker.ts";
import { connect } from "./connect.ts";
import { keepOpen } from "./open-shop.ts";
import { type Plan, readArguments, USAGE } from "./plans.ts";
import { Progress } from "./progress.ts";
import { printReport } from "./report.ts";
import { type Result, runOnce, WORKERS } from "./run.ts";
import { ORDERS, STOCK } from "./shop.ts";
import { paint, print } from "./terminal.ts";
import { judge, READ_ON } from "./verdict.ts";

const QUORUM = 3;
const COLOURS = { well: "green", limit: "yellow", broken: "red" } as const;

async function demo(plans: readonly Plan[], signal: AbortSignal): Promise<boolean> {
  const worker = await buildWorker(new URL("./worker.ts", import.meta.url));
  const servers: RedisServer[] = [];
  try {
    const server = await findRedis({ say: print });
    servers.push(server);
    const quorum: RedisServer[] = [];
    const needsQuorum = plans.some(({ strategy }) => strategy === "quorum");
    if (needsQuorum && serverCommand() === null)
      print("  quorum: left out, it needs three servers and there is no redis-server on the PATH");
    else if (needsQuorum)
      for (let i = 0; i < QUORUM; i++) {
        const member = await launchServer();
        servers.push(member);
        quorum.push(member);
      }
    const redis = await connect(server.url);
    try {
      print(
        `${WORKERS} processes sell ${STOCK} pieces of one product to ${ORDERS} customers, again and again.`,
      );
      print();
      const place = { redis, url: server.url, program: worker.path, progress: new Progress(), signal };
      const results: Result[] = [];
      for (const plan of plans) {
        const urls = plan.strategy === "quorum" ? quorum.map(({ url }) => url) : [];
        if (plan.strategy === "quorum" && urls.length === 0) continue;
        results.push(await runOnce(plan, { ...place, quorum: urls }));
      }
      printReport(results);
      const verdicts = results.map(judge);
      for (const { run, text, is } of verdicts) print(`  ${paint(COLOURS[is], run)}: ${text}`);
      print();
      print(`  ${READ_ON}`);
      return verdicts.every(({ is }) => is !== "broken");
    } finally {
      redis.disconnect();
    }
  } finally {
    await worker.remove();
    for (const server of servers) await server.stop();
  }
}

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    process.exitCode = 128 + constants.signals[signal];
    interruption.abort(new Error(`Interrupted by ${signal}`));
  });
// Such as `npm run demo | head`: nobody reads on, but the shop must be closed all the same.
process.stdout.on("error", interruption.abort.bind(interruption));

try {
  const wanted = readArguments(process.argv.slice(2));
  if (wanted === null) print(USAGE);
  // Its end is that somebody interrupts it.
  else if (wanted.isOpen) process.exitCode = (await keepOpen(interruption.signal)) ? 0 : 1;
  else if (!(await demo(wanted.plans, interruption.signal))) process.exitCode = 1;
} catch (error) {
  process.exitCode ??= 1;
  process.stderr.write(`\nThe demo failed. ${error instanceof Error ? error.message : String(error)}\n`);
}
