// Where a hold goes when its holder leaves: to the next caller here, or to the other processes. Protects that caller from a
// lease that is nearly over, and all others from a process that keeps the lock, or that could crash with far too long a lease.
import { ENOUGH_EXPLICIT, ENOUGH_WATCHDOG, PASS_TIME, TOO_MUCH } from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { Terms } from "../options.ts";

/**
 * May a hold be handed to these terms as it is, without a claim? Its own answer (`isDirect`) brought the full lease, of
 * which a slow reply may have eaten some; a grant or a pass brings what is left of another's time.
 */
export function isEnough(hold: Hold, terms: Terms, window: number, isDirect: boolean): boolean {
  const left = hold.left();
  if (isDirect) return hold.ttl >= terms.lease && left >= ENOUGH_WATCHDOG * terms.lease;
  return (
    left >= (terms.watchdog ? ENOUGH_WATCHDOG * Math.min(terms.lease, window) : ENOUGH_EXPLICIT * terms.lease)
  );
}

/** Would the hold, with so many ms left, block everybody else for long if this process died? */
export function isTooMuch(left: number, { lease }: Terms, window: number): boolean {
  return left > TOO_MUCH * lease && left > window;
}

/**
 * What to do with a hold when its holder leaves and a caller of this process waits. `passes`: how often the hold may be
 * passed on before that caller gets it.
 */
export function handover(
  hold: Hold,
  next: Terms,
  passes: number,
  window: number,
): "pass" | "confirm-and-pass" | "yield" {
  if (hold.passes >= passes || performance.now() - hold.ownedAt >= PASS_TIME) return "yield";
  // By what was asked for it, and not by what was answered: an extension may be on its way, or its answer may be lost. A new
  // hold has a TTL of its own.
  if (isTooMuch(Math.max(hold.mayLive, hold.left()), next, window)) return "yield";
  return isEnough(hold, next, window, false) ? "pass" : "confirm-and-pass";
}
