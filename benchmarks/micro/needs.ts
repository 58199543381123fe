import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { passageOf } from "../../test/support/passage.ts";

/** What an acquisition and a waiter need of the client when it is warm. */
export interface Needs extends ProcessNeeds {
  /** Source files, functions and their calls in a free `tryLock(1_000)` and `unlock()`. */
  readonly freeFiles: number;
  readonly freeFunctions: number;
  readonly freeCalls: number;
  /** The same of a `lock()` that waits for another process, and its `unlock()`. */
  readonly contendedFiles: number;
  readonly contendedFunctions: number;
  readonly contendedCalls: number;
}

/** What a process of its own finds out. */
export interface ProcessNeeds {
  /**
   * Of a contended acquisition of `fairLock` and its release, the two awaits of the caller's loop
   * included.
   */
  readonly promises: number;
  readonly bytes: number;
  /**
   * Heap bytes of a caller that waits in `lock()`, without options, and with `wait` and a signal of
   * its own.
   */
  readonly parked: number;
  readonly parkedWithSignal: number;
  readonly parkedFair: number;
  readonly parkedFairWithSignal: number;
  /** Heap bytes of a lock that stays with its process, unlocked. */
  readonly kept: number;
  /** What a call costs that nobody subscribes to this package's channels, in ns and in bytes. */
  readonly look: number;
  readonly lookBytes: number;
}

const PROGRAM = fileURLToPath(new URL("./needs-process.js", import.meta.url));
/** MB of young generation: room for all that is measured, so that nothing is collected meanwhile. */
const ROOM = 128;
const FLAGS = ["--expose-gc", `--min-semi-space-size=${ROOM}`, `--max-semi-space-size=${ROOM}`];

/** `library`: the file URL of another commit's Holdfast; null: the present one. */
export async function measureNeeds(url: string, library: string | null): Promise<Needs> {
  const args = [...FLAGS, PROGRAM, url, ...(library === null ? [] : [library])];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const free = await passageOf("free", library);
  const contended = await passageOf("contended", library);
  return {
    freeFiles: free.files.length,
    freeFunctions: free.functions.length,
    freeCalls: free.calls,
    contendedFiles: contended.files.length,
    contendedFunctions: contended.functions.length,
    contendedCalls: contended.calls,
    ...(JSON.parse(stdout) as ProcessNeeds),
  };
}
