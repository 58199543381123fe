import type { Output } from "../output.ts";
import { codeOf } from "./command.ts";
import type { Signals } from "./signals.ts";

/** What nobody reads is waited for so many ms. */
const LAST_WORDS = 1_000;

/**
 * Where that signal has ended the command, or the waiting, this program dies by it too: a shell ends its loop for Ctrl-C only when
 * it sees that. The others write files behind a crash, or are no key, so they only give the exit code. Returns where the system
 * does not let it die, as process 1 of a container.
 */
export async function dieBy(
  signal: NodeJS.Signals | null,
  code: number,
  signals: Signals,
  output: Output,
): Promise<void> {
  if ((signal !== "SIGINT" && signal !== "SIGTERM") || code !== codeOf(signal)) return;
  await output.drained(LAST_WORDS);
  // RACE: not before. One that comes while the lock is given back would end this program with the lock held, and its exit code with it.
  signals.stop();
  process.kill(process.pid, signal);
}
