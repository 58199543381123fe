// What goes back at the end of a turn of the event loop, because a caller may come before that. Protects other processes from a
// program that ends itself right after an unlock that it does not wait for.
import { together } from "../redis/writes.ts";
import { atProcessEnd, isEnding } from "../util/process-end.ts";
import { setImmediate } from "../util/real-timers.ts";

const due = new Set<() => void>();

/**
 * Calls `give` at the end of this turn of the event loop. RACE: the process may end in this turn, by `process.exit()` or an error that
 * nobody caught: then what is given is written by the exit handler. Once that has run no turn ends any more: `give` is called at once.
 */
export function atTurnEnd(give: () => void): void {
  if (isEnding) {
    give();
    return;
  }
  due.add(give);
  setImmediate(() => {
    if (due.delete(give)) give();
  });
}

atProcessEnd(() => {
  together(() => {
    for (const give of due) give();
  });
});
