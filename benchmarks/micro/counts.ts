import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What was counted of Holdfast, by row. `unit`: of all but bytes. */
export interface Counts {
  readonly unit: "k" | "µs";
  readonly counts: Readonly<Record<string, number>>;
}

/** Counts as recorded, and what they were counted with. */
interface Recorded {
  readonly node: string;
  readonly counts: Readonly<Record<string, number>>;
}

/** By how much a count may exceed its record: counts of the same code differ by less. */
const ALLOWED = 1.05;
const DIGITS = 4;
/** From build/benchmarks/micro. */
const FILE = fileURLToPath(new URL("../../../micro/recorded.json", import.meta.url));

/**
 * Writes these counts as those that later ones are compared with. Rows that were not counted stay,
 * unless they are another Node's.
 */
export function record(parts: readonly Counts[]): void {
  const before = JSON.parse(readFileSync(FILE, "utf8")) as Recorded;
  const counts = { ...(before.node === process.version ? before.counts : {}) };
  for (const part of parts)
    for (const [row, count] of Object.entries(instructions(part)))
      counts[row] = Number(count.toPrecision(DIGITS));
  const recorded: Recorded = { node: process.version, counts };
  writeFileSync(FILE, `${JSON.stringify(recorded, null, 2)}\n`);
}

/** The rows that exceed their record, each as a sentence. Rows without a record are named, too. */
export function exceeding(parts: readonly Counts[]): string[] {
  const { node, counts } = JSON.parse(readFileSync(FILE, "utf8")) as Recorded;
  if (node !== process.version)
    throw new Error(`The record is of Node ${node}, and this is ${process.version}: record it anew`);
  return parts.flatMap((part) =>
    Object.entries(instructions(part)).flatMap(([row, count]) => {
      const before = counts[row];
      if (before === undefined) return `${row}: ${count.toFixed(1)}, and no record`;
      if (count <= before * ALLOWED) return [];
      return `${row}: ${count.toFixed(1)}, ${(100 * (count / before - 1)).toFixed(1)} % above ${before}`;
    }),
  );
}

/** @throws Error unless they are instructions: times depend on the machine */
function instructions({ unit, counts }: Counts): Counts["counts"] {
  if (unit === "k") return counts;
  throw new Error("Only instructions can be compared with a record: perf or valgrind must be there");
}
