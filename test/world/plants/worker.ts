// Runs seeds of the world in a thread, with the product of `root`, until one fails.
import { parentPort, workerData } from "node:worker_threads";
import { loadProduct } from "../product.ts";
import { simulate } from "../simulate.ts";
import type { Task } from "./trial.ts";

const { root, seeds, ms } = workerData as Task;
const load = await loadProduct(root);
for (const seed of seeds) {
  const { failure, counts, hash } = await simulate(load, seed, { ms });
  parentPort?.postMessage({ seed, failure, counts, hash });
  if (failure !== null) break;
}
process.exit();
