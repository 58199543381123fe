// npm run world -- [options]: random runs in virtual time. See docs/maintaining.md.
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { printTable } from "./plants/table.ts";
import { loadProduct } from "./product.ts";
import { type Outcome, simulate } from "./simulate.ts";
import { runSeeds } from "./threads.ts";

const HELP = `Runs simulated processes in virtual time, each seed a run that can be repeated exactly.

  --seeds 200      how many, from --from
  --from 1         the first one
  --seconds 60     instead of --seeds: as many as fit into this real time
  --seed 7         this one only
  --trace          with --seed: tells the run as a story; --tail 100: its last lines only
  --ms 30000       the virtual length of each run
  --root .         the folder of the package that is run
  --workers 2      how many threads; default: one for each core
  --plants         which seed, of --seeds, finds each planted bug; --only text: of these names;
                   --record: write it down for the test`;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "200" },
    from: { type: "string", default: "1" },
    seconds: { type: "string" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    tail: { type: "string", default: "1000000" },
    ms: { type: "string", default: "30000" },
    root: { type: "string", default: resolve(import.meta.dirname, "../..") },
    workers: { type: "string", default: String(availableParallelism()) },
    plants: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    record: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) console.log(HELP);
else if (values.plants) await printTable(values.only, Number(values.seeds), values.record);
else if (values.seed !== undefined) await one(Number(values.seed));
else await many();

async function one(seed: number): Promise<void> {
  const load = await loadProduct(values.root);
  const outcome = await simulate(load, seed, { ms: Number(values.ms), isTold: values.trace });
  for (const line of outcome.story.slice(-Number(values.tail))) console.log(line);
  tell(outcome);
}

function tell({ seed, hasFaults, failure, hash, events, counts }: Outcome): void {
  console.log(
    `seed ${seed}${hasFaults ? " with faults" : ""}: ${failure === null ? "right" : `FAILED ${failure}`}`,
  );
  const shown = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
  console.log(`  hash ${hash}, ${events} events, ${shown.join(", ")}`);
  if (failure === null) return;
  console.log(`  npm run world -- --seed ${seed} --trace`);
  process.exitCode = 1;
}

/** Each thread takes the next seed when it has finished one. */
async function many(): Promise<void> {
  const began = performance.now();
  const total = { seeds: 0, failed: 0, acquired: 0, faults: 0, commands: 0, took: 0 };
  const seeds = nextSeeds();
  const work = async (): Promise<void> => {
    for await (const outcome of runSeeds({ root: values.root, ms: Number(values.ms) }, seeds)) {
      total.seeds++;
      total.acquired += outcome.counts.acquired;
      total.faults += outcome.counts.faults;
      total.commands += outcome.commands;
      total.took += outcome.took;
      if (outcome.failure === null) continue;
      total.failed++;
      tell(outcome);
    }
  };
  await Promise.all(Array.from({ length: Number(values.workers) }, work));
  const { user, system } = process.cpuUsage();
  console.log(
    `${total.seeds} seeds from ${values.from}, ${total.failed} failed: ${(total.took / 3_600_000).toFixed(2)} virtual hours, ` +
      `${total.acquired} acquisitions, ${total.faults} faults, ${total.commands} commands, in ` +
      `${((performance.now() - began) / 1_000).toFixed(0)} s, ${((user + system) / 1e6).toFixed(0)} s of CPU`,
  );
}

/** Those of all threads. */
function* nextSeeds(): Generator<number> {
  const { from, seeds, seconds } = values;
  const began = performance.now();
  for (let i = 0; ; i++) {
    const isOver =
      seconds === undefined ? i >= Number(seeds) : performance.now() - began >= Number(seconds) * 1_000;
    if (isOver) return;
    yield Number(from) + i;
  }
}
