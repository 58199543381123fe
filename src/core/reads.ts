// Which readers may enter a hold that readers of this process share. Protects writers from readers
// that enter one after the other without Redis knowing of any of them, and from the lease of a
// reader that left long ago.

import { FRESH, SHARE_TIME } from "../defaults.ts";
import type { Instant } from "../util/clock.ts";
import { fits, isTooLong, type Next } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import type { Terms } from "./lease/terms.ts";

/** The state of a shared hold. */
export interface Openness {
  readonly hold: Hold;
  /** When the last command was sent to which Redis answered that no caller waits. */
  readonly asked: Instant;
  /**
   * A caller waits, or that is unknown: then permanently, because the hold must come to its end.
   */
  readonly isClosed: boolean;
  /** Is a command under way that asks Redis whether another caller waits? */
  readonly isJoining: boolean;
  /** Is no caller inside? */
  readonly isIdle: boolean;
}

/**
 * May readers that were not there at the grant enter, if Redis says that no caller waits? RACE: not
 * while such a question is under way: after a second command about this hold, no answer would be
 * the last word.
 */
export const isJoinable = ({ isClosed, isJoining }: Openness): boolean => !isClosed && !isJoining;

/**
 * Has Redis said recently enough that no caller waits? The absence of messages is no proof: they
 * may be lost.
 */
export function isOpen(mine: Openness, mono: number, wall: number): boolean {
  const { asked, hold } = mine;
  // A message would report a writer, so the span is longer. RACE: that message may be lost, so it
  // is not unlimited.
  const span = hold.flag > 0 ? FRESH : SHARE_TIME;
  return isJoinable(mine) && mono < asked.mono + span && wall < asked.wall + span;
}

/**
 * "enough": the hold suits these terms as it is. "short": after its end is raised. "no": not at
 * all, because if this process died, writers would wait for the longest lease of any caller that
 * was inside.
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

/** May this reader enter? */
export function next(mine: Openness, terms: Terms, window: number, mono: number, wall: number): Next {
  if (!isJoinable(mine)) return "no";
  const how = leaseFits(mine.hold, terms, window, mono, wall);
  if (how === "no") return "no";
  // It is cached, and wanted by another object of the same lock, without lingering.
  const isForeign = mine.isIdle && terms.linger === 0;
  return how === "enough" && isOpen(mine, mono, wall) && !isForeign ? "now" : "ask";
}
