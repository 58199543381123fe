/** npm run demo: a shop sells 200 pieces from 4 processes, without a lock, with a spin lock, and with Holdfast. */
import { constants } from "node:os";
import { findRedis } from "../tools/redis.ts";
import { connect } from "./connect.ts";
import { WAYS } from "./guards.ts";
import { Progress } from "./progress.ts";
import { printReport } from "./report.ts";
import { oversold, type Result, runOnce, tokensGrow, WORKERS } from "./run.ts";
import { ORDERS, STOCK } from "./shop.ts";
import { paint, print } from "./terminal.ts";

async function demo(signal: AbortSignal): Promise<boolean> {
  const server = await findRedis({ say: print });
  try {
    const redis = await connect(server.url);
    try {
      print(`${WORKERS} processes sell ${STOCK} pieces of one product to ${ORDERS} customers, three times.`);
      print();
      const progress = new Progress();
      const results: Result[] = [];
      for (const way of WAYS) results.push(await runOnce({ way, redis, url: server.url, progress, signal }));
      printReport(results);
      return results.map(judge).every((fine) => fine);
    } finally {
      redis.disconnect();
    }
  } finally {
    await server.stop();
  }
}

/** Says what the run has shown. False when Holdfast did not do what it promises. */
function judge(result: Result): boolean {
  const { way, sold, stock } = result;
  const kept = sold === STOCK && stock === 0;
  const fine = way !== "Holdfast" || (kept && tokensGrow(result));
  if (oversold(result) > 0)
    print(`  ${paint("red", way)}: ${oversold(result)} customers have paid for a piece that does not exist.`);
  else if (fine && kept) print(`  ${paint("green", way)}: every piece was sold, and none of them twice.`);
  else print(`  ${paint("red", way)}: sold ${sold} of ${STOCK}, stock ${stock}. This should not happen.`);
  return fine;
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
  if (!(await demo(interruption.signal))) process.exitCode = 1;
} catch (error) {
  process.exitCode ??= 1;
  process.stderr.write(`\nThe demo failed. ${error instanceof Error ? error.message : String(error)}\n`);
}
