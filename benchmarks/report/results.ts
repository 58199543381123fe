import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { refuseBusy } from "../figures/busy.ts";
import type { ScenarioResult } from "../figures/result.ts";
import type { Table } from "../table/lines.ts";

const INDENT = 2;
const TABLE = "table.json";
const DIGITS = 4;
/** A list of numbers as JSON.stringify indents it. Texts cannot match: their line breaks are escaped. */
const NUMBERS_ON_LINES = /\[\n\s+[-+\d.e,\s]+?\n\s+\]/g;

/**
 * Writes `<scenario>.json` into `dir`, which is made when missing. Repeated runs should differ in
 * few characters: lists of numbers stand on one line, and fractions have 4 significant digits.
 *
 * @returns the path of the file
 */
export async function saveScenario(dir: string, result: ScenarioResult): Promise<string> {
  const path = join(dir, `${result.scenario}.json`);
  const text = JSON.stringify(result, shorten, INDENT).replace(NUMBERS_ON_LINES, onOneLine);
  await mkdir(dir, { recursive: true });
  await writeFile(path, `${text}\n`);
  return path;
}

/** Writes the figures of the table that stands in the README. */
export async function saveTable(dir: string, table: Table): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(
    join(dir, TABLE),
    `${JSON.stringify(table, shorten, INDENT).replace(NUMBERS_ON_LINES, onOneLine)}\n`,
  );
}

/** What {@link saveTable} has written into `dir`; null: nothing. @throws Error for a busy machine's */
export async function loadTable(dir: string): Promise<Table | null> {
  if (!(await namesIn(dir)).includes(TABLE)) return null;
  const path = join(dir, TABLE);
  const table = JSON.parse(await readFile(path, "utf8")) as Table;
  refuseBusy(path, table);
  return table;
}

/**
 * All that {@link saveScenario} has written into `dir`, by name; none when `dir` does not
 * exist. @throws Error for a result of a busy machine
 */
export async function loadScenarios(dir: string): Promise<ScenarioResult[]> {
  const names = (await namesIn(dir)).filter((name) => name.endsWith(".json") && name !== TABLE).sort();
  return Promise.all(names.map((name) => loadScenario(join(dir, name))));
}

async function loadScenario(path: string): Promise<ScenarioResult> {
  const result: unknown = JSON.parse(await readFile(path, "utf8"));
  if (!isScenario(result))
    throw new Error(`${path} is not a result of the benchmarks. Delete it, or run its scenario again.`);
  refuseBusy(path, result);
  return result;
}

/**
 * Tells results from other files, not from those of another version: run all scenarios again after
 * a change of types.
 */
function isScenario(value: unknown): value is ScenarioResult {
  return typeof value === "object" && value !== null && "scenario" in value && "entries" in value;
}

async function namesIn(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** Whole numbers are counts and the seed, and stay as they are. */
function shorten(_key: string, value: unknown): unknown {
  if (typeof value !== "number" || Number.isInteger(value)) return value;
  return Number(value.toPrecision(DIGITS));
}

function onOneLine(list: string): string {
  return list.replace(/\n\s+/g, " ").replace("[ ", "[").replace(" ]", "]");
}
