import { PERMITS } from "../arenas/arena.ts";
import type { LockKind } from "../history/events.ts";
import type { Call } from "./story.ts";

/** As many as one caller takes that is alone. */
const ALL = 1_000_000;

/** Of what a lock has, so much is one caller's. */
export const unitsOf = ({ kind, units = 1 }: Call): number =>
  kind === "permit" ? units : kind === "readLock" ? 1 : ALL;

/** And so much there is. */
export const roomOf = (kind: LockKind): number => (kind === "permit" ? PERMITS : ALL);
