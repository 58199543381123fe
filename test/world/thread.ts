// A thread of threads.ts: runs each seed that it is sent.
import { parentPort, workerData } from "node:worker_threads";
import { loadProduct } from "./product.ts";
import { simulate } from "./simulate.ts";
import type { Work } from "./threads.ts";

const { root, ms } = workerData as Work;
const loading = loadProduct(root);
parentPort?.on("message", async (seed: number) => {
  parentPort?.postMessage(await simulate(await loading, seed, { ms }));
});
