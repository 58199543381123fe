import type { Figures } from "./result.ts";
import { median } from "./statistics.ts";

/**
 * Counts of what must not happen are added up over the rounds, of the most inside the greatest
 * counts; all else is a median.
 */
const ADDED = new Set(["overlaps", "timeouts", "errors", "lost"]);

/** What stands for all rounds of a contender; null when there are none. */
export function medians(rounds: readonly Figures[]): Figures | null {
  const [first] = rounds;
  if (!first) return null;
  const merged = Object.entries(first).map(([key, value]) => {
    const values = rounds.map((round) => (round as unknown as Record<string, unknown>)[key]);
    if (Array.isArray(value)) return [key, key === "messages" ? [...new Set(values.flat())].slice(0, 5) : []];
    const numbers = values.filter((one) => typeof one === "number");
    if (numbers.length === 0) return [key, value];
    if (key === "inside") return [key, Math.max(...numbers)];
    return [key, ADDED.has(key) ? numbers.reduce((sum, one) => sum + one, 0) : median(numbers)];
  });
  return Object.fromEntries(merged) as Figures;
}
