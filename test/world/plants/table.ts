// npm run world -- --plants [--only text] [--seeds 100] [--record]: which seed finds each planted bug.
import { readFound, writeFound } from "./found.ts";
import { plants } from "./index.ts";
import { passes } from "./outside.ts";
import { failureOf, play } from "./trial.ts";

/** A row for each bug whose name contains `only`: searches the seeds up to `most`, and records them. */
export async function printTable(only: string, most: number, isRecorded: boolean): Promise<void> {
  const found = await readFound();
  const seeds = Array.from({ length: most }, (_, i) => i + 1);
  const next = plants.filter(({ name, test }) => !test && name.includes(only)).values();
  const work = async (): Promise<void> => {
    for (const plant of next) {
      const began = performance.now();
      const played = await play(plant, seeds);
      const took = `${((performance.now() - began) / 1_000).toFixed(1)} s`;
      const { seed = 0 } = played.at(-1) ?? {};
      const failure = failureOf(played);
      if (failure === null) {
        delete found[plant.name];
        process.exitCode = 1;
        console.log(`${plant.name} | SURVIVES ${most} seeds | ${took}`);
      } else {
        const [first = ""] = failure.split("\n");
        found[plant.name] = { seed, failure: first };
        console.log(`${plant.name} | seed ${seed} | ${took} | ${first}`);
      }
    }
  };
  await Promise.all([work(), work()]);
  for (const plant of plants.filter(({ name, test }) => test && name.includes(only))) {
    const began = performance.now();
    const [before, after] = [await passes(plant, false), await passes(plant, true)];
    const took = `${((performance.now() - began) / 1_000).toFixed(1)} s`;
    const how = before && !after ? "found by" : `SURVIVES (${before ? "green" : "red"} without it)`;
    if (!before || after) process.exitCode = 1;
    console.log(`${plant.name} | ${how} ${plant.test?.file} | ${took}`);
  }
  if (!isRecorded) return;
  const rows = plants.flatMap(({ name }) => (found[name] ? [[name, found[name]] as const] : []));
  await writeFound(Object.fromEntries(rows));
}
