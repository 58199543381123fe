/**
 * npm run demo: a shop sells 200 pieces from 4 processes, by every strategy that the command line
 * asks for; or stays open.
 */
import { constants } from "node:os";
import { describeMachine, isBusy, measureMachine } from "../tools/machine.ts";
import { findRedis, launchServer, type RedisServer, serverCommand } from "../tools/redis/index.ts";
import { buildWorker } from "./build-worker.ts";
import { connect } from "./connect.ts";
import { introOf, titleOf } from "./intro.ts";
import { keepOpen } from "./open-shop.ts";
import { readArguments, USAGE, type Wanted } from "./plans.ts";
import { Progress } from "./progress.ts";
import { printReport } from "./report.ts";
import { type Result, runOnce, WORKERS } from "./run.ts";
import { ORDERS, STOCK } from "./shop.ts";
import { paint, print, wrap } from "./terminal.ts";
import { judge, READ_ON, type Verdict } from "./verdict.ts";

const QUORUM = 3;
/** The colour of a verdict, and its sign where there is none. */
const LOOKS = {
  well: ["green", "✓"],
  damage: ["red", "✗"],
  limit: ["yellow", "!"],
  missed: ["yellow", "?"],
  broken: ["red", "✗"],
} as const;

async function demo({ plans, driver }: Wanted, signal: AbortSignal): Promise<boolean> {
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
      say(
        `${WORKERS} processes sell ${STOCK} pieces of one product to ${ORDERS} customers, again and again.`,
        "",
      );
      if (driver === "node-redis") print("Holdfast's locks run on node-redis, the rest on ioredis.");
      const progress = new Progress();
      const place = { redis, url: server.url, driver, program: worker.path, progress, signal };
      const results: Result[] = [];
      const verdicts: Verdict[] = [];
      for (const plan of plans) {
        const urls = plan.strategy === "quorum" ? quorum.map(({ url }) => url) : [];
        if (plan.strategy === "quorum" && urls.length === 0) continue;
        print();
        print(paint("bold", titleOf(plan)));
        say(introOf(plan));
        const result = await runOnce(plan, { ...place, quorum: urls });
        const verdict = judge(result);
        const [colour, sign] = LOOKS[verdict.is];
        for (const line of wrap(verdict.text, "    ", `  ${sign} `)) print(paint(colour, line));
        results.push(result);
        verdicts.push(verdict);
      }
      print();
      printReport(results);
      await sayIfBusy();
      print(paint("bold", "Read on"));
      for (const [path, about] of READ_ON) print(`  ${path.padEnd(20)} ${about}`);
      return verdicts.every(({ is }) => is !== "broken");
    } finally {
      redis.disconnect();
    }
  } catch (error) {
    if (!signal.aborted) await sayIfBusy();
    throw error;
  } finally {
    await worker.remove();
    for (const server of servers) await server.stop();
  }
}

function say(text: string, indent?: string): void {
  for (const line of wrap(text, indent)) print(line);
}

/** Leases end while a busy machine lets a process wait, and then results are the machine's. */
async function sayIfBusy(): Promise<void> {
  const machine = await measureMachine();
  if (!isBusy(machine)) return;
  say(
    `This machine is busy (${describeMachine(machine)}). Seconds and waits are longer for that, and a result that is not as it should be may come from leases that ended too early.`,
  );
  print();
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
  else if (!(await demo(wanted, interruption.signal))) process.exitCode = 1;
} catch (error) {
  process.exitCode ??= 1;
  process.stderr.write(`\nThe demo failed. ${error instanceof Error ? error.message : String(error)}\n`);
}
