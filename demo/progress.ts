import type { Plan } from "./plans.ts";
import { STOCK } from "./shop.ts";
import { bar, isTerminal, paint, print } from "./terminal.ts";

interface Seen {
  readonly sold: number;
  readonly stock: number;
}

const BAR = 20;
const LABEL = 32;
const PLAIN_LINE_EVERY_MS = 1_000;

/**
 * One line for each run: redrawn in place on a terminal; elsewhere, where nothing can be redrawn,
 * one when it begins, one a second, and one when it has ended.
 */
export class Progress {
  #label = "";
  #lastDrawn = 0;

  start({ strategy, stops, isFenced }: Plan): void {
    const how = stops ? `, a worker stops${isFenced ? ", fenced" : ""}` : "";
    this.#label = `${strategy}${how}`.padEnd(LABEL);
    this.#draw("starting the workers ...");
  }

  show(seen: Seen): void {
    if (isTerminal || performance.now() - this.#lastDrawn >= PLAIN_LINE_EVERY_MS) this.#draw(describe(seen));
  }

  end(seen: Seen & { seconds: number }): void {
    this.#draw(`${describe(seen)}  ${seen.seconds.toFixed(2)} s`);
    if (isTerminal) print();
  }

  #draw(text: string): void {
    const line = `  ${paint("bold", this.#label)}  ${text}`;
    if (isTerminal) process.stdout.write(`\r\x1b[2K${line}`);
    else print(line);
    this.#lastDrawn = performance.now();
  }
}

function describe({ sold, stock }: Seen): string {
  const drawn = isTerminal
    ? `${paint(sold > STOCK ? "red" : "cyan", bar(sold / STOCK, BAR).padEnd(BAR))}  `
    : "";
  return `${drawn}${`${sold}`.padStart(3)} sold of ${STOCK}, stock says ${`${stock}`.padStart(3)}`;
}
