// npm run world -- --plants [--only text] [--seeds 100] [--record]: which seed finds each planted bug.
import { readFound, writeFound } from "./found.ts";
import { plants } from "./index.ts";
import { run } from "./outside.ts";
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
        // What happened in no run has no seed of its own.
        const isOfAll = played.every((one) => one.failure === null);
        found[plant.name] = { seed: isOfAll ? null : seed, failure: first };
        console.log(`${plant.name} | seed ${seed} | ${took} | ${first}`);
      }
    }
  };
  await Promise.all([work(), work()]);
  for (const plant of plants.filter(({ name, test }) => test && name.includes(only))) {
    const began = performance.now();
    const [before, after] = [await run(plant, false), await run(plant, true)];
    const took = `${((performance.now() - began) / 1_000).toFixed(1)} s`;
    const isFound = before.passed > 0 && before.failed === 0 && after.failed > 0;
    if (!isFound) process.exitCode = 1;
    const counts = `${before.failed} failed of ${before.passed} without it, ${after.failed} with it`;
    console.log(
      `${plant.name} | ${isFound ? "found" : "SURVIVES"}: ${plant.test?.file} | ${took} | ${counts}`,
    );
  }
  if (!isRecorded) return;
  const rows = plants.flatMap(({ name, test }) =>
    found[name] && !test ? [[name, found[name]] as const] : [],
  );
  await writeFound(Object.fromEntries(rows));
}
