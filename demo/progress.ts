import { STOCK } from "./shop.ts";
import { bar, isTerminal, paint, print } from "./terminal.ts";

interface Seen {
  readonly sold: number;
  readonly stock: number;
}

const BAR = 20;
const PLAIN_LINE_EVERY_MS = 3_000;

/**
 * One line for each run: redrawn in place on a terminal; elsewhere, where nothing can be redrawn,
 * one every 3 s, and one when it has ended.
 */
export class Progress {
  #lastDrawn = 0;

  start(): void {
    if (isTerminal) this.#draw("starting the processes ...");
    this.#lastDrawn = performance.now();
  }

  show(seen: Seen): void {
    if (isTerminal || performance.now() - this.#lastDrawn >= PLAIN_LINE_EVERY_MS) this.#draw(describe(seen));
  }

  end(seen: Seen & { seconds: number }): void {
    this.#draw(`${describe(seen)}, ${seen.seconds.toFixed(2)} s`);
    if (isTerminal) print();
  }

  #draw(text: string): void {
    const line = `  ${text}`;
    if (isTerminal) process.stdout.write(`\r\x1b[2K${line}`);
    else print(line);
    this.#lastDrawn = performance.now();
  }
}

function describe({ sold, stock }: Seen): string {
  const drawn = isTerminal
    ? `${paint(sold > STOCK ? "red" : "cyan", bar(sold / STOCK, BAR).padEnd(BAR))}  `
    : "";
  return `${drawn}${sold} sold of ${STOCK}, stock says ${stock}`;
}
