import type { Output } from "../output.ts";
import { codeOf } from "./command.ts";

/** What nobody reads is waited for so many ms. */
const LAST_WORDS = 1_000;

/**
 * Where that signal has ended the command, or the waiting, this program dies by it too: a shell ends its loop for Ctrl-C only when
 * it sees that. The others write files behind a crash, or are no key, so they only give the exit code. Returns where the system
 * does not let it die, as process 1 of a container.
 */
export async function dieBy(signal: NodeJS.Signals | null, code: number, output: Output): Promise<void> {
  if ((signal !== "SIGINT" && signal !== "SIGTERM") || code !== codeOf(signal)) return;
  await output.drained(LAST_WORDS);
  process.kill(process.pid, signal);
}
