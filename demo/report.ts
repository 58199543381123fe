import { percentile } from "../tools/percentile.ts";
import { oversold, type Result, tokensGrow } from "./run.ts";
import { STOCK } from "./shop.ts";
import { bar, paint, print } from "./terminal.ts";

const LABEL = 27;
const COLUMN = 17;
const BAR = 44;

/** The table, the bars, and what they mean in a sentence each. */
export function printReport(results: readonly Result[]): void {
  print();
  printTable(results);
  print();
  printBars(
    results,
    "pieces sold",
    (result) => result.sold,
    (sold) => `${sold} of ${STOCK}`,
  );
  printBars(results, "wait, 99th percentile", (result) => percentile(result.waits, 0.99), inMs);
  printBars(results, "commands sent per sale", perSale("sent"), (value) => value.toFixed(1));
}

function printTable(results: readonly Result[]): void {
  const row = (label: string, cell: (result: Result) => string) =>
    print(`  ${label.padEnd(LABEL)}${results.map((result) => cell(result).padStart(COLUMN)).join("")}`);

  const title = results.map((result) => paint("bold", result.way.padStart(COLUMN))).join("");
  print(`  ${"".padEnd(LABEL)}${title}`);
  row("sold", (result) => `${result.sold}`);
  const cells = results.map((result) => {
    const count = oversold(result);
    return paint(count > 0 ? "red" : "green", `${count}`.padStart(COLUMN));
  });
  print(`  ${"oversold".padEnd(LABEL)}${cells.join("")}`);
  row("stock left, says Redis", (result) => `${result.stock}`);
  row("seconds", (result) => result.seconds.toFixed(2));
  row("wait, median", (result) => inMs(percentile(result.waits, 0.5)));
  row("wait, 99th percentile", (result) => inMs(percentile(result.waits, 0.99)));
  row("commands sent per sale (1)", (result) => perSale("sent")(result).toFixed(1));
  row("  executed per sale (2)", (result) => perSale("executed")(result).toFixed(1));
  row("first fencing token", ({ tokens }) => `${tokens.at(0) ?? "none"}`);
  row("last fencing token", ({ tokens }) => `${tokens.at(-1) ?? "none"}`);
  row("tokens grow at every sale", (result) =>
    result.tokens.length === 0 ? "-" : tokensGrow(result) ? "yes" : "NO",
  );
  print();
  print(paint("dim", "  Sold: the length of the list of sales in Redis. Oversold: beyond the stock."));
  print(paint("dim", "  Wait: of all orders, sold or sold out, from asking for the lock to having it."));
  print(paint("dim", "  (1) Sent by the workers, on all their connections; a script counts once."));
  print(paint("dim", "  (2) Counted by Redis, which adds the commands that scripts call inside."));
}

function printBars(
  results: readonly Result[],
  title: string,
  value: (result: Result) => number,
  text: (value: number) => string,
): void {
  const longest = Math.max(...results.map(value));
  print(`  ${paint("bold", title)}`);
  for (const result of results) {
    const style = oversold(result) > 0 ? "red" : result.way === "Holdfast" ? "green" : "yellow";
    const drawn = bar(longest === 0 ? 0 : value(result) / longest, BAR);
    print(`    ${result.way.padEnd(10)}${paint(style, drawn)} ${text(value(result))}`);
  }
  print();
}

function perSale(count: "sent" | "executed"): (result: Result) => number {
  return (result) => result[count] / Math.max(1, result.sold);
}

function inMs(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}
