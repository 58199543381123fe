// npm run world -- --plants [--only text] [--record]: which seed finds each planted bug.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { plants } from "./index.ts";
import { play } from "./trial.ts";

/** By the names of plants: the first seed that finds it, and the promise that was seen broken. */
export type Found = Readonly<Record<string, { readonly seed: number; readonly failure: string }>>;

const FOUND = join(import.meta.dirname, "found.json");

export const readFound = async (): Promise<Found> => JSON.parse(await readFile(FOUND, "utf8"));

/** Prints a row for each plant whose name contains `only`. Searches all seeds up to `most`. */
export async function printTable(only: string, most: number, isRecorded: boolean): Promise<void> {
  const found: Record<string, Found[string]> = { ...(await readFound().catch(() => ({}))) };
  const seeds = Array.from({ length: most }, (_, i) => i + 1);
  const chosen = plants.filter(({ name, test }) => !test && name.includes(only));
  const next = chosen.values();
  const turn = async (): Promise<void> => {
    for (const plant of next) {
      const began = performance.now();
      const played = await play(plant, seeds);
      const took = `${((performance.now() - began) / 1_000).toFixed(1)} s`;
      const last = played.at(-1);
      if (last && last.failure !== null) {
        found[plant.name] = { seed: last.seed, failure: last.failure.split("\n")[0] ?? "" };
        console.log(`${plant.name} | seed ${last.seed} | ${took} | ${last.failure.split("\n")[0]}`);
      } else {
        delete found[plant.name];
        process.exitCode = 1;
        console.log(`${plant.name} | SURVIVES ${most} seeds | ${took}`);
      }
    }
  };
  await Promise.all([turn(), turn()]);
  if (!isRecorded) return;
  const rows = plants.flatMap(({ name }) => (found[name] ? [[name, found[name]] as const] : []));
  await writeFile(FOUND, `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`);
}
