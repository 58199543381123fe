import type { Entry, LoadFigures, ScenarioResult } from "../figures/result.ts";

// What tables and charts ask of a contender's results.

export function isHoldfast({ title }: Entry): boolean {
  return title.startsWith("Holdfast");
}

/** For sorting: what is painted last lies on top. */
export function holdfastLast(one: { entry: Entry }, other: { entry: Entry }): number {
  return Number(isHoldfast(one.entry)) - Number(isHoldfast(other.entry));
}

/** Null when it has none, or when the scenario is about callers that stand still. */
export function loadOf({ figures }: Entry): LoadFigures | null {
  return figures?.is === "load" ? figures : null;
}

export function loadRoundsOf({ rounds }: Entry): LoadFigures[] {
  return rounds.filter((round) => round.is === "load");
}

export function perSecondOf(entry: Entry): number {
  return loadOf(entry)?.perSecond ?? 0;
}

/** Had all processes of all rounds warmed up? */
export const isWarm = ({ entries }: ScenarioResult): boolean =>
  entries.flatMap(loadRoundsOf).every(({ warmUp }) => warmUp > 0);

/** What must stand beside a figure lest it misleads; empty for most. */
export function caveatOf(entry: Entry, wanted: number): string {
  const overlapped = (loadOf(entry)?.overlaps ?? 0) > 0;
  const ran = entry.rounds.length;
  return [overlapped ? "holders overlapped" : "", ran < wanted ? `${ran} of ${wanted} rounds` : ""]
    .filter((part) => part !== "")
    .join(", ");
}
