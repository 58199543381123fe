// A program: callers of one process that take turns at one lock. Told by IPC how many acquisitions
// to make, it answers what they took; told "collect", it collects its garbage. Arguments: the URL of
// a Redis; the id of a contender; how many callers; the file URL of another commit's Holdfast, or
// nothing.
import { contenders } from "../contenders/all.ts";

/** What some acquisitions took. A message of the parent is their number; 0: the end. */
export interface Took {
  /** µs of CPU time of this process in its own code and its libraries, all threads. */
  readonly user: number;
  /** Bytes by which the heap has grown: all that was allocated, as long as nothing is collected. */
  readonly bytes: number;
  /**
   * Acquisitions whose lock was lost: a process that valgrind executes may stand still for longer
   * than a grant lasts.
   */
  readonly lost: number;
}

const ASK = { wait: 60_000, lease: null, isWriter: false };

const [url = "", id = "", callers = "", library = null] = process.argv.slice(2);
const contender = contenders[id];
if (!contender) throw new Error(`There is no contender ${id}`);
const session = await contender.open(url, { worker: 0, workers: 1, library });

/** Returns how many were lost. */
async function contend(acquisitions: number): Promise<number> {
  let left = acquisitions;
  let lost = 0;
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      const release = await session.acquire("contended", ASK);
      if (!release) throw new Error("The lock was not free in time");
      await release().catch((error: { code?: string }) => {
        if (error.code !== "LOCK_LOST") throw error;
        lost++;
      });
    }
  };
  await Promise.all(Array.from({ length: Number(callers) }, loop));
  return lost;
}

process.on("message", async (acquisitions: number | "collect") => {
  if (acquisitions === 0) process.exit();
  if (acquisitions === "collect") {
    globalThis.gc?.();
    return;
  }
  const { heapUsed } = process.memoryUsage();
  const before = process.cpuUsage();
  const lost = await contend(acquisitions);
  const { user } = process.cpuUsage(before);
  const took: Took = { user, bytes: process.memoryUsage().heapUsed - heapUsed, lost };
  process.send?.(took);
});
// The parent has failed.
process.once("disconnect", () => process.exit());
process.send?.("open");
