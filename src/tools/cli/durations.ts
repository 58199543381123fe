import { quoteWhole } from "../../util/quote.ts";
import { UsageError } from "./exit-codes.ts";

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const PARTS = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;
const WHOLE = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;

/**
 * "500ms", "30s", "1h30m" in ms. A bare number other than 0 is refused: for other tools it means
 * seconds, for libraries ms.
 */
export function readDuration(text: string, flag: string): number {
  if (text === "0") return 0;
  if (!WHOLE.test(text))
    throw new UsageError(
      `${flag} takes a time with its unit, such as 500ms, 30s or 1h30m, not ${quoteWhole(text)}.`,
    );
  let sum = 0;
  for (const [, number, unit] of text.matchAll(PARTS))
    sum += Number(number) * UNITS[unit as keyof typeof UNITS];
  return Math.round(sum);
}

/** For people: the two largest units that matter. Null: unknown; Infinity: no end. */
export function showDuration(ms: number | null): string {
  if (ms === null) return "?";
  if (ms === Number.POSITIVE_INFINITY) return "no end";
  const clamped = Math.max(0, ms);
  if (clamped < 1_000) return `${Math.round(clamped)} ms`;
  if (clamped < 10_000) return `${(clamped / 1_000).toFixed(1)} s`;
  const seconds = Math.round(clamped / 1_000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
