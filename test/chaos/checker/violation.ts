import type { Call } from "./story.ts";

/** Something that must not happen, at a moment of the history. */
export interface Violation {
  readonly rule: string;
  readonly what: string;
  readonly at: number;
  /** The calls that took part. */
  readonly calls: readonly Call[];
}

/** A call as a violation names it: "2.1#17". */
export const nameOf = ({ by, number }: Call): string => `${by}#${number}`;

/** µs as ms for people. */
export const ms = (micros: number): string => `${(micros / 1_000).toFixed(3)} ms`;
