// Which hold suits a caller. Protects that caller from a lease that is nearly over, and all others
// from a process that could crash with far too long a lease.
import { ENOUGH_EXPLICIT, ENOUGH_WATCHDOG, STAY_WINDOW, TOO_MUCH } from "../defaults.ts";
import type { Hold } from "./lease/hold.ts";
import type { Terms } from "./lease/terms.ts";

/** A caller that may enter a hold of its process. */
export interface Applicant {
  readonly terms: Terms;
  /** How many local hand-offs may come before this caller gets it, while others wait. */
  readonly passes: number;
}

/**
 * May a caller of this process enter a hold that the process has? "now": without a round trip;
 * "ask": after one; "no": others come first.
 */
export type Next = "now" | "ask" | "no";

/**
 * May a hold with `left` ms left be handed to these terms? "enough": as it is; "short": after a
 * claim; "too much": it would block all others for long if this process died. `isDirect`: its own
 * answer brought the full lease, of which a slow reply may have used some. A grant or a local
 * hand-off brings the rest of another caller's time.
 */
export function fits(
  { ttl }: Pick<Hold, "ttl">,
  left: number,
  { lease, watchdog }: Terms,
  window: number,
  isDirect: boolean,
): "enough" | "short" | "too much" {
  if (left > window && left > TOO_MUCH * lease) return "too much";
  const least = isDirect
    ? ENOUGH_WATCHDOG * lease
    : watchdog
      ? ENOUGH_WATCHDOG * Math.min(lease, window, STAY_WINDOW)
      : ENOUGH_EXPLICIT * lease;
  return left >= least && (ttl >= lease || !isDirect) ? "enough" : "short";
}

/**
 * Would it block others for too long? RACE: this depends on the TTL requested for it, not the TTL
 * answered: an extension may be under way, or its answer lost. If this process crashed, the others
 * would wait for all of it. A new hold has its own TTL.
 */
export function isTooLong(
  hold: Pick<Hold, "ttl" | "mayLiveUntil" | "endMono">,
  terms: Terms,
  window: number,
  mono: number,
): boolean {
  const left = Math.max(hold.mayLiveUntil, hold.endMono) - mono;
  return fits(hold, left, terms, window, false) === "too much";
}

/**
 * TTL to request for a caller, in ms. A watchdog's lease is claimed when its caller stays for
 * longer than the window `most`. A hold that may linger gets that window, or its caller's explicit
 * lease if that is longer: if this process died, others would wait that long for an unused lock.
 */
export function ttlFor({ lease, watchdog, linger }: Terms, most: number): number {
  if (linger > 0) return watchdog ? most : Math.max(lease, most);
  return watchdog ? Math.min(lease, most) : lease;
}
