// Which readers may come into a hold that readers of this process share. Protects writers from
// readers that come in one after the other without Redis seeing any of them, and from the lease of
// a reader that left long ago.
import { FRESH, SHARE_TIME } from "../../defaults.ts";
import type { Instant } from "../../util/clock.ts";
import type { Hold } from "../lease/hold.ts";
import type { Terms } from "../lease/terms.ts";
import { fits, isTooLong, type Next } from "./fits.ts";

/** What is known of those that wait for a hold to end. */
export interface Openness {
  readonly hold: Hold;
  /** When the command was sent to which Redis has said last that nobody waits. */
  readonly asked: Instant;
  /** Somebody waits, or nobody knows: for good, because the hold must come to its end. */
  readonly isClosed: boolean;
  /** Is Redis being asked whether somebody waits? */
  readonly isJoining: boolean;
  /** Is nobody inside? */
  readonly isIdle: boolean;
}

/**
 * May readers come in that were not there when the hold was granted, when Redis says that nobody
 * waits? RACE: while one question is under way another one would be a second command about this
 * hold, and neither would be the last word.
 */
export const isJoinable = ({ isClosed, isJoining }: Openness): boolean => !isClosed && !isJoining;

/** Has Redis said so lately that nobody waits? Not by hearing nothing: messages may be lost. */
export function isOpen(mine: Openness, mono: number, wall: number): boolean {
  const { asked, hold } = mine;
  // A writer would say so, too. RACE: that may be lost, so it is longer, and not without end.
  const span = hold.flag > 0 ? FRESH : SHARE_TIME;
  return isJoinable(mine) && mono < asked.mono + span && wall < asked.wall + span;
}

/**
 * "enough": the hold suits these terms as it is. "short": when its end is raised. "no": not at all,
 * because if this process died, writers would wait for the longest lease of any caller that was
 * inside.
 */
export function leaseFits(
  hold: Hold,
  terms: Terms,
  window: number,
  mono: number,
  wall: number,
): "enough" | "short" | "no" {
  const left = hold.left(mono, wall);
  if (left <= 0 || isTooLong(hold, terms, window, mono)) return "no";
  return fits(hold, left, terms, window, false) === "enough" ? "enough" : "short";
}

/** May this reader come in? */
export function next(mine: Openness, terms: Terms, window: number, mono: number, wall: number): Next {
  if (!isJoinable(mine)) return "no";
  const how = leaseFits(mine.hold, terms, window, mono, wall);
  if (how === "no") return "no";
  // Kept, and wanted by another object of the same lock, which does without lingering.
  const isForeign = mine.isIdle && terms.linger === 0;
  return how === "enough" && isOpen(mine, mono, wall) && !isForeign ? "now" : "ask";
}
