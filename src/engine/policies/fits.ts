// Which hold suits a caller. Protects that caller from a lease that is nearly over, and all others
// from a process that could crash with far too long a lease.
import { ENOUGH_EXPLICIT, ENOUGH_WATCHDOG, STAY_WINDOW, TOO_MUCH } from "../../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { Terms } from "../lease/terms.ts";

/** How a caller comes to a hold that its process has. */
export interface Applicant {
  readonly terms: Terms;
  /** How often the lock may have been passed on before this caller gets it, while others wait. */
  readonly passes: number;
}

/**
 * May a caller of this process come into a hold that the process has? "now": without asking Redis;
 * "ask": after Redis was asked; "no": others come first.
 */
export type Next = "now" | "ask" | "no";

/**
 * May a hold with so many ms left be handed to these terms? "enough": as it is; "short": after a
 * claim; "too much": it would block everybody else for long if this process died. `isDirect`: its
 * own answer brought the full lease, of which a slow reply may have eaten some. A grant or a pass
 * brings what is left of another's time.
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
 * Would it block others for too long? RACE: judged by what was asked for it, and not by what was
 * answered: an extension may be on its way, or its answer may be lost. If this process crashed, the
 * others would wait for all of it. A new hold has a TTL of its own.
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
 * What a hold is raised to for a caller, in ms. A watchdog's lease is claimed when its caller stays
 * for longer. A hold that may linger gets at most the window `most`: if this process died, others
 * would wait for all of it for a lock that nobody uses.
 */
export function ttlFor({ lease, watchdog, linger }: Terms, most: number): number {
  if (linger > 0) return watchdog ? most : Math.max(lease, most);
  return watchdog ? Math.min(lease, most) : lease;
}
