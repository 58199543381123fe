import { paint, print } from "../../demo/terminal.ts";
import { describeBusy } from "../figures/busy.ts";
import type { Entry, ScenarioResult } from "../figures/result.ts";
import { type Column, LOAD_COLUMNS, STILL_COLUMNS } from "./columns.ts";
import { caveatOf, loadOf } from "./entries.ts";
import { inMs, NONE } from "./numbers.ts";

const TITLE = 30;
const LONGEST = 140;

/**
 * A row for each contender, the best of each column in bold; below it a line of its processes when
 * they were new, and what went wrong.
 */
export function printScenario(result: ScenarioResult): void {
  const { scenario, about, rounds, seed, entries } = result;
  const stands = entries.some(({ figures }) => figures?.is === "still");
  const columns = stands ? STILL_COLUMNS : LOAD_COLUMNS;
  print(`${paint("bold", scenario)}  ${about}`);
  print(paint("dim", `${rounds === 1 ? "one round" : `medians of ${rounds} rounds`}, warm, seed ${seed}`));
  if (result.busy !== null) print(paint("red", `${describeBusy(result.busy)}: measure it again`));
  print();
  for (const line of [0, 1] as const) {
    const heads = columns.map(({ head, width }) => head[line].padStart(width)).join("");
    print(paint("dim", `  ${"".padEnd(TITLE)}${heads}`));
  }
  const best = columns.map((column) => bestOf(column, entries));
  for (const entry of entries) printEntry(entry, columns, best, rounds);
  print();
}

function printEntry(
  entry: Entry,
  columns: readonly Column[],
  best: readonly (number | null)[],
  wanted: number,
): void {
  const { title, figures, trouble } = entry;
  const cells = columns.map((column, index) => {
    const value = figures === null ? null : column.value(figures);
    const isKnown = value !== null && Number.isFinite(value);
    const text = (isKnown ? column.text(value) : NONE).padStart(column.width);
    if (column.best === "none") return isKnown && value > 0 ? paint("red", text) : text;
    return isKnown && value === best[index] ? paint("bold", text) : text;
  });
  print(`  ${title.slice(0, TITLE).padEnd(TITLE)}${cells.join("")}`);
  const cold = coldLine(entry);
  if (cold !== null) print(`    ${paint("dim", cold)}`);
  if (figures !== null && entry.rounds.length < wanted) print(`    ${paint("red", caveatOf(entry, wanted))}`);
  for (const reason of trouble) print(`    ${paint("red", oneLine(reason))}`);
  for (const message of figures?.messages ?? []) print(`    ${paint("dim", oneLine(message))}`);
}

/** What the processes needed when they had just started; null: that was not measured. */
function coldLine(entry: Entry): string | null {
  const figures = loadOf(entry);
  if (figures === null) return null;
  const ms = (value: number | null): string => (value === null ? NONE : inMs(value));
  const { coldFirst1000, coldFirst2000, coldWaitMax } = figures;
  return `new processes: CPU of one's first 1 000 ${ms(coldFirst1000)}, 2 000 ${ms(coldFirst2000)}; longest wait ${ms(coldWaitMax)}`;
}

/**
 * Of those that are locks: the floor is none, nor is one whose holders overlapped. Null: there is
 * nobody to beat.
 */
function bestOf({ value, best }: Column, entries: readonly Entry[]): number | null {
  const values = entries
    .filter(({ waits }) => waits !== "floor")
    .flatMap(({ figures }) =>
      figures === null || (figures.is === "load" && figures.overlaps > 0) ? [] : [figures],
    )
    .map(value)
    .filter((found) => found !== null)
    .filter(Number.isFinite);
  if (values.length < 2 || best === "neither") return null;
  return best === "most" ? Math.max(...values) : Math.min(...values);
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST - 1)}…`;
}
