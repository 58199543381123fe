import { existsSync } from "node:fs";
import { join } from "node:path";
import { line, type Row } from "../../../benchmarks/table/lines.ts";
import { readText } from "./markdown.ts";

/** Written by `npm run bench -- --table`. */
const TABLE = "benchmarks/results/table.json";

/** The README's comparison has the rows that were measured last, as they were. */
export function checkMeasured(root: string): string[] {
  if (!existsSync(join(root, TABLE))) return [];
  const { rows } = JSON.parse(readText(root, TABLE)) as { rows: Row[] };
  const page = readText(root, "README.md").split("\n");
  return rows
    .map(line)
    .filter((text) => !page.includes(text))
    .map((text) => `README.md: lacks the measured row ${text}`);
}
