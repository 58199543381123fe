import { PERMITS } from "../arenas/arena.ts";
import type { Setting, Story } from "./story.ts";

/** A number of permits, and when it may have been in force, in µs. */
export interface InForce {
  readonly permits: number;
  readonly from: number;
  readonly to: number;
}

/** What the code of all workers says counts until somebody has set another number. */
const BY_CODE = {
  permits: PERMITS,
  asked: Number.NEGATIVE_INFINITY,
  answered: Number.NEGATIVE_INFINITY,
  stands: true,
};

/**
 * The numbers of permits of a semaphore. One may be in force from when it is asked for until a later one surely is; and once more
 * when a server has forgotten, until one that is asked for behind that surely is.
 */
export function permitsOf({ settings, forgettings }: Story, lock: string): InForce[] {
  const ours = settings.filter((one) => one.lock === lock);
  const untilAfter = (at: number): number =>
    Math.min(
      Number.POSITIVE_INFINITY,
      ...ours.flatMap(({ stands, asked, answered }) => (stands && asked > at ? [answered] : [])),
    );
  return [BY_CODE, ...ours].flatMap((one: Omit<Setting, "lock">) => [
    { permits: one.permits, from: one.asked, to: untilAfter(one.answered) },
    ...forgettings
      .filter(({ at }) => at >= one.asked)
      .map(({ since, at }) => ({
        permits: one.permits,
        from: Math.max(since, one.asked),
        to: untilAfter(at),
      })),
  ]);
}

/** The largest number that may have been in force at any moment between two times. */
export const mostPermits = (all: readonly InForce[], from: number, to: number): number =>
  Math.max(...all.filter((one) => one.from <= to && one.to >= from).map(({ permits }) => permits));
