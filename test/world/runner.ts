// A process of index.ts: runs the seeds that it is sent. Arguments: the package's folder, virtual ms.
import { loadProduct } from "./product.ts";
import { type Outcome, simulate } from "./simulate.ts";

/** `outcome`: of the last seed; null: it is ready for the first one. `cpu`: seconds since the last. */
export interface Answer {
  readonly outcome: Outcome | null;
  readonly cpu: number;
}

const [root = ".", ms] = process.argv.slice(2);
let used = 0;
const answer = (outcome: Outcome | null): void => {
  const { user, system } = process.cpuUsage();
  const cpu = (user + system) / 1e6;
  process.send?.({ outcome, cpu: cpu - used } satisfies Answer);
  used = cpu;
};

const load = await loadProduct(root);
process.on("message", async (seed: number) => answer(await simulate(load, seed, { ms: Number(ms) })));
answer(null);
