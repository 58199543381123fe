import { readdirSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** What a process has. */
export interface Usage {
  /** Bytes of JavaScript objects that a full garbage collection has left. */
  readonly heap: number;
  /** Bytes of the whole process. */
  readonly rss: number;
  /** Open files and sockets; 0 where the system has no /proc. */
  readonly descriptors: number;
  /** What keeps the event loop busy: timers, sockets, requests. */
  readonly active: number;
}

export async function usage(): Promise<Usage> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // What finalizers free is collected by the next one.
  for (let i = 0; i < 3; i++) {
    collect();
    await nextTurn();
  }
  const { heapUsed: heap, rss } = process.memoryUsage();
  return { heap, rss, descriptors: descriptors(), active: process.getActiveResourcesInfo().length };
}

function descriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}
