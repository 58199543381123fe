import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Passage } from "./coverage.ts";

const PROGRAM = new URL("./passage-process.ts", import.meta.url);

/** What one warm, uncontended `tryLock()` and `unlock()` pass in src, measured in a process of its own. */
export async function tryLockPassage(url: string): Promise<Passage> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", fileURLToPath(PROGRAM), url],
    { cwd: fileURLToPath(new URL("../..", import.meta.url)) }, // where "tsx" is found
  );
  return JSON.parse(stdout) as Passage;
}
