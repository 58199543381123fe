// The present turn of the event loop. Protects the rest of this process from callers that come and
// go without letting it turn; and other processes from a program that exits right after an unlock
// that it did not await.
import { TURNS_TIME } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import { clocks } from "../util/clock.ts";
import { atProcessEnd, isEnding } from "../util/process-end.ts";
import { setImmediate } from "../util/real-timers.ts";

/** Steps to run at its end. */
let due = new Set<() => void>();
/** When the first caller entered a lock in it without a round trip; 0: none has. */
let since = 0;
let isAwaited = false;

/**
 * Have callers come and gone for so long that the event loop must turn before the next one? Each
 * continues in a microtask, and those of many locks could continue forever.
 */
export function isTurnSpent(mono = clocks.mono.now()): boolean {
  if (since > 0) return mono - since >= TURNS_TIME;
  since = mono;
  awaitEnd();
  return false;
}

/**
 * Calls `step` at the end of this turn; the same function is called once. RACE: the process may end
 * in this turn, by `process.exit()` or an uncaught error: then the exit handler writes what is
 * given back. After that handler no turn ends any more, so `step` is called at once.
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
  // What these steps schedule is for the next turn.
  due = new Set();
  try {
    for (const step of steps) {
      steps.delete(step);
      step();
    }
  } finally {
    // RACE: if a step throws, the others run a turn later, and none is lost.
    for (const step of steps) atTurnEnd(step);
  }
}

atProcessEnd(() => sendAtTurnEnd(end));
