import { percentile } from "../tools/numbers.ts";
import { oversold, type Result, tokensGrow } from "./run.ts";
import { STOCK } from "./shop.ts";
import { isWrong, type Strategy, WITH_TOKENS } from "./strategies.ts";
import { bar, paint, print, wrap } from "./terminal.ts";

const LABEL = 11;
const BAR = 44;

/** A column: its two lines of heading, its width, and what it says of a run. */
type Column = readonly [string, string, number, (result: Result) => string];

const COLUMNS: readonly Column[] = [
  ["", "sold", 4, ({ sold }) => `${sold}`],
  ["over-", "sold", 6, (result) => overs(result)],
  ["stock", "left", 6, ({ stock }) => `${stock}`],
  ["", "seconds", 8, ({ seconds }) => seconds.toFixed(2)],
  ["wait,", "p99", 8, ({ waits }) => inMs(percentile(waits, 0.99))],
  ["commands", "per sale", 9, (result) => perSale("sent")(result).toFixed(1)],
  ["executed", "per sale", 9, (result) => perSale("executed")(result).toFixed(1)],
  ["charges", "per sale", 9, (result) => perSale("charges")(result).toFixed(1)],
  ["tokens", "grow", 7, (result) => (result.tokens.length === 0 ? "-" : tokensGrow(result) ? "yes" : "NO")],
];

/** The tables, the bars, and what they mean in a sentence each. */
export function printReport(results: readonly Result[]): void {
  // What a wrong lock takes is of no interest.
  const calm = results.filter(({ stops, strategy }) => !stops && !isWrong(strategy));
  if (calm.length > 0) printCalm(calm);
  printStops(results.filter((result) => result.stops));
}

function printCalm(calm: readonly Result[]): void {
  printTable(calm);
  printBars(
    calm,
    "pieces sold",
    (result) => result.sold,
    (sold) => `${sold} of ${STOCK}`,
  );
  printBars(calm, "wait, 99th percentile", (result) => percentile(result.waits, 0.99), inMs);
  printBars(calm, "commands per sale", perSale("sent"), (value) => value.toFixed(1));
  printWorth(calm);
}

/** What it is worth that waiters park, in a sentence. */
function printWorth(results: readonly Result[]): void {
  const [spin, handOff] = ["spin", "hand-off"].map((name) =>
    results.find(({ strategy }) => strategy === name),
  );
  if (!spin || !handOff) return;
  const times = (of: (result: Result) => number): string => (of(spin) / of(handOff)).toFixed(1);
  const shares = `${times(perSale("sent"))} times the commands, ${times(perSale("executed"))} times the work for Redis`;
  const took = `and ${times(({ seconds }) => seconds)} times as long`;
  for (const line of wrap(`Beside the hand-off, spinning takes ${shares}, ${took}.`)) print(line);
  print();
}

const LEGEND = [
  "Sold: the length of the list of sales in Redis. Oversold: beyond the stock.",
  "Wait: of all orders, sold or sold out, from asking to the reading of the stock that counted; 99 % waited no longer.",
  "Commands: sent by the processes, a script is one. Executed: by Redis, those inside scripts too.",
  "Charges: calls to the payment service; more than 1 where a conflict runs the sale again.",
];

function printTable(results: readonly Result[]): void {
  for (const line of [0, 1] as const) {
    const heads = COLUMNS.map((column) => column[line].padStart(column[2])).join("");
    print(paint("bold", `  ${"".padEnd(LABEL)}${heads}`));
  }
  for (const result of results) {
    const cells = COLUMNS.map(([, , width, cell]) => cell(result).padStart(width)).join("");
    print(`  ${paint(oversold(result) > 0 ? "red" : "green", result.strategy.padEnd(LABEL))}${cells}`);
  }
  print();
  for (const line of LEGEND.flatMap((text) => wrap(text))) print(paint("dim", line));
  print();
}

/** What became of the stock when a worker was stopped between reading and writing. */
function printStops(results: readonly Result[]): void {
  if (results.length === 0) return;
  print(`  ${paint("bold", "One process is stopped between reading and writing, until others have sold")}`);
  const row = (...cells: string[]) =>
    print(`    ${cells.map((cell, i) => (i === 0 ? cell.padEnd(LABEL) : cell.padStart(21))).join("")}`);
  row("", "oversold, no fencing", "oversold, fenced", "writes refused");
  for (const strategy of new Set(results.map((result) => result.strategy))) {
    const find = (isFenced: boolean) =>
      results.find((result) => result.strategy === strategy && result.isFenced === isFenced);
    const [plain, fenced] = [find(false), find(true)];
    row(
      strategy,
      plain ? overs(plain) : "",
      fenced ? overs(fenced) : noTokens(strategy),
      fenced ? `${fenced.refused}` : "",
    );
  }
  print();
}

const noTokens = (strategy: Strategy): string => (WITH_TOKENS.includes(strategy) ? "" : "no tokens");

function printBars(
  results: readonly Result[],
  title: string,
  value: (result: Result) => number,
  text: (value: number) => string,
): void {
  const longest = Math.max(...results.map(value));
  print(`  ${paint("bold", title)}`);
  for (const result of results) {
    const style = oversold(result) > 0 ? "red" : "green";
    const drawn = bar(longest === 0 ? 0 : value(result) / longest, BAR);
    print(`    ${result.strategy.padEnd(LABEL)}${paint(style, drawn)} ${text(value(result))}`);
  }
  print();
}

function perSale(count: "sent" | "executed" | "charges"): (result: Result) => number {
  return (result) => result[count] / Math.max(1, result.sold);
}

const overs = (result: Result): string => `${oversold(result)}`;

function inMs(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}
