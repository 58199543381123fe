// Runs seeds of the world in a thread, with the product of `root`, until one fails.
import { parentPort, workerData } from "node:worker_threads";
import { loadProduct } from "../product.ts";
import { simulate } from "../simulate.ts";
import type { Played, Task } from "./trial.ts";

const { root, seeds, ms } = workerData as Task;
const load = await loadProduct(root);
for (const seed of seeds) {
  const { hasFaults, failure, effects } = await simulate(load, seed, { ms });
  parentPort?.postMessage({ seed, hasFaults, failure, effects: { ...effects } } satisfies Played);
  if (failure !== null) break;
}
process.exit();
