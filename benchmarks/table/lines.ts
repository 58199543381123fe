import type { Measured } from "../figures/result.ts";
import { median } from "../figures/statistics.ts";
import { inMs, NONE, short } from "../report/numbers.ts";

/** ms after which the answer is "not within that time". */
export const PATIENCE = 30_000;

/** A figure of one library, by round; null: no answer in time. "never": it has no such signal. */
export type Figure = readonly (number | null)[] | "never";

export interface Row {
  readonly about: string;
  readonly figures: readonly Figure[];
}

/** What is saved of the README's comparison. */
export interface Table extends Measured {
  readonly libraries: readonly string[];
  readonly rows: readonly Row[];
}

/**
 * The rows, and how their figures are written. `isCompared`: with how many times the first
 * library's figure it is.
 */
const KINDS = {
  handOff: { about: "hand-off: unlock to the next holder, in another process", text: inMs, isCompared: true },
  turns: {
    about: "turns of 16 callers of one lock (Jain's index; 1: all had the same)",
    text: (jain: number) => jain.toFixed(2),
    isCompared: false,
  },
  longestWait: { about: "longest wait of these callers", text: inMs, isCompared: true },
  loss: {
    about: "loss told after the event loop was blocked for longer than the lease",
    text: inMs,
    isCompared: false,
  },
  gone: { about: "error of `lock()` when Redis is gone", text: inMs, isCompared: true },
  hangs: { about: "error of `lock()` when Redis hangs", text: inMs, isCompared: true },
  pair: { about: "lock and unlock, nobody else", text: (us: number) => `${short(us)} µs`, isCompared: true },
} as const;

type Kind = keyof typeof KINDS;

export const aboutOf = (kind: Kind): string => KINDS[kind].about;

/** A row of the table. */
export const row = (kind: Kind, figures: readonly Figure[]): Row => ({ about: aboutOf(kind), figures });

/** A row as Markdown, with the medians of its figures. */
export function line({ about, figures }: Row): string {
  const kind = Object.values(KINDS).find((known) => known.about === about);
  if (!kind) throw new Error(`There is no row '${about}'`);
  const values = figures.map((figure) => (figure === "never" ? figure : middle(figure)));
  const [ours] = values;
  const cells = values.map((value, i) => {
    if (value === "never") return "never";
    if (value === null) return NONE;
    if (value === Number.POSITIVE_INFINITY) return `none within ${PATIENCE / 1_000} s`;
    const isBeside =
      kind.isCompared && i > 0 && typeof ours === "number" && Number.isFinite(ours) && ours > 0;
    return isBeside ? `${kind.text(value)} (${short(value / ours)} ×)` : kind.text(value);
  });
  return `| ${[about, ...cells].join(" | ")} |`;
}

/** A null counts as longer than all others. Null: there was no round. */
export function middle(rounds: readonly (number | null)[]): number | null {
  return rounds.length === 0 ? null : median(rounds.map((value) => value ?? Number.POSITIVE_INFINITY));
}
