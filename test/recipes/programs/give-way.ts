import { once } from "node:events";
import { createLockClient, type Lease } from "holdfast";
import { connect, figure, ms, prove, sleep, startProcess, word } from "./support.ts";

const redis = connect();
const locks = createLockClient(redis);
let done = 0;

async function index(_batch: number, _signal: AbortSignal): Promise<void> {
  await sleep(20);
  done++;
}

// #region reindex
/** Takes hours, but releases the lock whenever another caller waits for it. */
async function reindex(batches: number[]): Promise<void> {
  while (batches.length > 0) await locks.lock("index").withLock((lease) => some(batches, lease));
}

/** Runs batches until another caller waits, and at least one. */
async function some(batches: number[], { signal, wanted }: Lease): Promise<void> {
  for (let next = batches.shift(); next !== undefined; next = wanted.aborted ? undefined : batches.shift())
    await index(next, signal);
}
// #endregion

if (process.argv[2] === "visitor") {
  process.send?.("is here");
  for (let visit = 0; visit < 5; visit++) {
    const began = performance.now();
    await locks.lock("index").withLock(() => {});
    process.send?.(String(performance.now() - began));
    await sleep(100);
  }
  await locks.close();
  await redis.quit();
  process.disconnect?.();
} else {
  const BATCHES = 200;
  const visitor = startProcess(import.meta.url, "visitor");
  await word(visitor);
  const waits: number[] = [];
  visitor.on("message", (wait: string) => waits.push(Number(wait)));
  const indexing = reindex(Array.from({ length: BATCHES }, (_, i) => i));
  await word(visitor);
  prove(done < BATCHES, "the visitor need not wait for the end of the job");
  await Promise.all([indexing, visitor.exitCode ?? once(visitor, "exit")]);
  prove(done === BATCHES, "nothing is left out");
  figure("longest wait of a visitor", ms(Math.max(...waits)));
  await locks.close();
  await redis.quit();
}
