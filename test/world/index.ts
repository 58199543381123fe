// npm run world -- [--seeds 1000 | --seed 7] [--from 1] [--ms 30000] [--faults | --calm] [--trace] [--tail 100] [--stop]
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadProduct } from "./product.ts";
import { simulate } from "./simulate.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "200" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    ms: { type: "string", default: "30000" },
    root: { type: "string", default: resolve(import.meta.dirname, "../..") },
    faults: { type: "boolean", default: false },
    calm: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
    tail: { type: "string" },
    stop: { type: "boolean", default: false },
  },
});

const first = Number(values.seed ?? values.from);
const last = values.seed === undefined ? first + Number(values.seeds) - 1 : first;
const began = performance.now();
const load = await loadProduct(values.root);
const total = { failed: 0, acquired: 0, commands: 0, faults: 0, took: 0, events: 0 };
for (let seed = first; seed <= last; seed++) {
  if ((values.faults && seed % 2 === 1) || (values.calm && seed % 2 === 0)) continue;
  const outcome = await simulate(load, seed, { ms: Number(values.ms), isTold: values.trace });
  total.acquired += outcome.counts.acquired;
  total.faults += outcome.counts.faults;
  total.commands += outcome.commands;
  total.events += outcome.events;
  total.took += outcome.took;
  if (values.trace) console.log(outcome.story.slice(-Number(values.tail ?? 1e9)).join("\n"));
  if (outcome.failure !== null || values.seed !== undefined) {
    const { acquired, ...others } = outcome.counts;
    const what = outcome.failure === null ? "is right" : `FAILED ${outcome.failure}`;
    console.log(`seed ${seed}${outcome.hasFaults ? " with faults" : ""}: ${what}`);
    console.log(
      `  ${outcome.hash}, ${outcome.events} events, ${acquired} acquired, ${JSON.stringify(others)}`,
    );
  }
  if (outcome.failure === null) continue;
  total.failed++;
  process.exitCode = 1;
  if (values.stop) break;
}
const { user, system } = process.cpuUsage();
const cpu = (user + system) / 1e6;
console.log(
  `${last - first + 1} seeds, ${total.failed} failed: ${total.acquired} acquisitions, ${total.faults} faults, ` +
    `${total.commands} commands in ${(total.took / 3_600_000).toFixed(2)} virtual hours; ` +
    `${((performance.now() - began) / 1_000).toFixed(1)} s, ${cpu.toFixed(1)} s of CPU`,
);
