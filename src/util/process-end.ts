// The end of the process: by `process.exit()`, by an uncaught error, or because nothing is left to
// do. Node.js runs the exit handlers, and then nothing more: no timer, no promise, no reply.
import { setImmediate } from "./real-timers.ts";

/**
 * Has our exit handler begun? RACE: the application may unlock in an exit handler of its own that
 * runs after ours. From now on nothing is cached, handed on locally or postponed, because no turn
 * of the event loop follows.
 */
export let isEnding = false;
const steps: (() => void)[] = [];
let isHeard = false;

/** Calls `step` in an exit handler when the process ends; one with `isLast` after all others. */
export function atProcessEnd(step: () => void, isLast = false): void {
  if (isLast) steps.push(step);
  else steps.unshift(step);
}

/**
 * Call it before there is anything to give back: Node.js does not run a handler that an exit
 * handler adds.
 */
export function hearProcessEnd(): void {
  if (isHeard) return;
  isHeard = true;
  process.on("exit", () => {
    isEnding = true;
    // Some programs emit the event themselves, and keep running.
    setImmediate(() => {
      isEnding = false;
    });
    for (const step of steps) step();
  });
}
