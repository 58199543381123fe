import { codeOf } from "./command.ts";
import type { Signals } from "./signals.ts";

/** A signal came before the command was started. */
export class Interrupted extends Error {}

/** Has signals end the waiting from now on: that one aborts by `Interrupted`. The second one ends the program: it is meant. */
export function endWaiting(signals: Signals, stopping = new AbortController()): AbortSignal {
  signals.to((signal) => {
    if (stopping.signal.aborted) process.exit(codeOf(signal));
    stopping.abort(new Interrupted());
  });
  return stopping.signal;
}
