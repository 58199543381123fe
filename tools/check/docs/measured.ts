import { existsSync } from "node:fs";
import { join } from "node:path";
import { whyNotShown } from "../../../benchmarks/figures/busy.ts";
import { line, type Row } from "../../../benchmarks/table/lines.ts";
import { readText } from "./markdown.ts";

/** Written by `npm run bench -- --table`. */
const TABLE = "benchmarks/results/table.json";

/**
 * The README's comparison has the rows of the last measurement, unchanged. A table from a busy
 * machine is refused.
 */
export function checkMeasured(root: string): string[] {
  if (!existsSync(join(root, TABLE))) return [];
  const table = JSON.parse(readText(root, TABLE)) as { rows: Row[]; busy?: number | null };
  const why = whyNotShown(TABLE, table);
  if (why !== null) return [why];
  const { rows } = table;
  const page = readText(root, "README.md").split("\n");
  return rows
    .map(line)
    .filter((text) => !page.includes(text))
    .map((text) => `README.md: lacks the measured row ${text}`);
}
