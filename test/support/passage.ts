import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Passage } from "./coverage.ts";
import type { Call } from "./passage-process.ts";

/** Node's arguments: for this tree as it is, or as compiled by tsc. */
const PROGRAM = import.meta.url.endsWith(".ts")
  ? ["--import", "tsx", fileURLToPath(new URL("./passage-process.ts", import.meta.url))]
  : [fileURLToPath(new URL("./passage-process.js", import.meta.url))];

/**
 * The code of src that a warm call executes, measured in a separate process with a private server.
 *
 * @param library the file URL of another commit's compiled index.js; null: the present one
 */
export async function passageOf(call: Call, library: string | null = null): Promise<Passage> {
  const args = [...PROGRAM, call, ...(library === null ? [] : ["--library", library])];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: fileURLToPath(new URL("../..", import.meta.url)), // where "tsx" is found
  });
  return JSON.parse(stdout) as Passage;
}
