// The end of the process: by `process.exit()`, by an error that nobody catches, or because nothing
// is left to do. Node.js runs the exit handlers, and then nothing: no timer, no promise, no reply.
import { setImmediate } from "./real-timers.ts";

/**
 * Has our exit handler begun? RACE: the application may unlock in an exit handler of its own that
 * runs after ours. From now on nothing is kept, passed on or put off, because no turn of the event
 * loop follows.
 */
export let isEnding = false;
const steps: (() => void)[] = [];
let isHeard = false;

/** Calls `step` when the process ends, in an exit handler; one that `isLast` after all others. */
export function atProcessEnd(step: () => void, isLast = false): void {
  if (isLast) steps.push(step);
  else steps.unshift(step);
}

/**
 * To be called before there is anything to give back: Node.js does not run a handler that is added
 * by an exit handler.
 */
export function hearProcessEnd(): void {
  if (isHeard) return;
  isHeard = true;
  process.on("exit", () => {
    isEnding = true;
    // Some programs emit the event themselves, and live on.
    setImmediate(() => {
      isEnding = false;
    });
    for (const step of steps) step();
  });
}
