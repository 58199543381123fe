// The present turn of the event loop. Protects everything else in this process from callers that
// come and go without ever letting it turn, and other processes from a program that ends itself
// right after an unlock that it does not wait for.
import { TURNS_TIME } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import { clocks } from "../util/clock.ts";
import { atProcessEnd, isEnding } from "../util/process-end.ts";
import { setImmediate } from "../util/real-timers.ts";

/** What is left to do at its end. */
let due = new Set<() => void>();
/** When the first caller came in it without asking Redis; 0: none has. */
let since = 0;
let isAwaited = false;

/**
 * Have callers come and gone for so long that the event loop must turn before the next one? Each
 * goes on in a microtask, and those of many locks could go on for ever.
 */
export function isTurnSpent(mono = clocks.mono.now()): boolean {
  if (since > 0) return mono - since >= TURNS_TIME;
  since = mono;
  awaitEnd();
  return false;
}

/**
 * Calls `step` at the end of this turn; the same function is called once. RACE: the process may end
 * in this turn, by `process.exit()` or an error that nobody caught: then what is given back is
 * written by the exit handler. Once that has run no turn ends any more: `step` is called at once.
 */
export function atTurnEnd(step: () => void): void {
  if (isEnding) {
    step();
    return;
  }
  due.add(step);
  awaitEnd();
}

function awaitEnd(): void {
  if (isAwaited) return;
  isAwaited = true;
  setImmediate(end);
}

function end(): void {
  isAwaited = false;
  since = 0;
  const steps = due;
  // What these steps put off is for the next turn.
  due = new Set();
  try {
    for (const step of steps) {
      steps.delete(step);
      step();
    }
  } finally {
    // RACE: a step throws: the others come a turn later, and none is lost.
    for (const step of steps) atTurnEnd(step);
  }
}

atProcessEnd(() => sendAtTurnEnd(end));
