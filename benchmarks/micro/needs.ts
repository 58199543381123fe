import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** What an acquisition and a waiter need of the client when it is warm. */
export interface Needs {
  /** Source files and function entries that one uncontended `tryLock()` and `unlock()` pass. */
  readonly files: number;
  readonly entries: number;
  /** Of a contended acquisition of `fairLock` and its release, the two awaits of the caller's loop included. */
  readonly promises: number;
  readonly bytes: number;
  /** Heap bytes of a caller that waits in `lock()`, without options, and with `wait` and a signal of its own. */
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

/** In a process of its own. `library`: the file URL of another commit's Holdfast; null: the present one. */
export async function measureNeeds(url: string, library: string | null): Promise<Needs> {
  const args = [...FLAGS, PROGRAM, url, ...(library === null ? [] : [library])];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as Needs;
}
