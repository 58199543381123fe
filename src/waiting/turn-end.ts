// What goes back at the end of a turn of the event loop, because a caller may come before that. Protects other processes from a
// program that ends itself right behind an unlock that it does not wait for.
import { writeNow } from "../redis/writes.ts";
import { setImmediate } from "../util/real-timers.ts";

const due = new Set<() => void>();
let hearsExit = false;

/**
 * Calls `give` at the end of this turn of the event loop. RACE: the process may end in this turn, by `process.exit()` or an error that
 * nobody caught: then what is given is written by the exit handler.
 */
export function atTurnEnd(give: () => void): void {
  due.add(give);
  setImmediate(() => {
    if (due.delete(give)) give();
  });
  if (!hearsExit) process.on("exit", giveAll);
  hearsExit = true;
}

function giveAll(): void {
  for (const give of due) give();
  writeNow();
}
