// A program: callers of one process that take turns at one lock. Told by IPC how many acquisitions to make, it answers what they took.
// Arguments: the URL of a Redis; the id of a contender; the file URL of another commit's Holdfast, or nothing.
import { contenders } from "../contenders/all.ts";

/** What some acquisitions took. Each message of the parent is their number; 0: the end. */
export interface Took {
  /** µs of CPU time of this process in its own code and its libraries, all threads. */
  readonly user: number;
  /** Bytes by which the heap has grown: all that was allocated, as long as nothing is collected. */
  readonly bytes: number;
}

const CALLERS = 4;
const ASK = { wait: 60_000, lease: null, isWriter: false };

const [url = "", id = "", library = null] = process.argv.slice(2);
const contender = contenders[id];
if (!contender) throw new Error(`There is no contender ${id}`);
const session = await contender.open(url, { worker: 0, workers: 1, library });

async function contend(acquisitions: number): Promise<void> {
  let left = acquisitions;
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      const release = await session.acquire("contended", ASK);
      if (!release) throw new Error("The lock was not free in time");
      await release();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, loop));
}

process.on("message", async (acquisitions: number) => {
  if (acquisitions === 0) process.exit();
  globalThis.gc?.();
  const { heapUsed } = process.memoryUsage();
  const before = process.cpuUsage();
  await contend(acquisitions);
  const { user } = process.cpuUsage(before);
  const took: Took = { user, bytes: process.memoryUsage().heapUsed - heapUsed };
  process.send?.(took);
});
process.send?.("open");
