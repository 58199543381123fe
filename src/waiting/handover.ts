// Where a hold goes when its holder leaves: to the next caller here, or to the other processes. Protects that caller from a
// lease that is nearly over, and all others from a process that keeps the lock, or that could crash with far too long a lease.
import { ENOUGH_EXPLICIT, ENOUGH_WATCHDOG, PASS_TIME, TOO_MUCH } from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { Terms } from "../options.ts";

/**
 * May a hold with so many ms left be handed to these terms? "enough": as it is; "short": behind a claim; "too much": it would
 * block everybody else for long if this process died. `isDirect`: its own answer brought the full lease, of which a slow reply
 * may have eaten some. A grant or a pass brings what is left of another's time.
 */
export function suits(
  { ttl }: Hold,
  left: number,
  { lease, watchdog }: Terms,
  window: number,
  isDirect: boolean,
): "enough" | "short" | "too much" {
  if (left > window && left > TOO_MUCH * lease) return "too much";
  const least = isDirect
    ? ENOUGH_WATCHDOG * lease
    : watchdog
      ? ENOUGH_WATCHDOG * Math.min(lease, window)
      : ENOUGH_EXPLICIT * lease;
  return left >= least && (ttl >= lease || !isDirect) ? "enough" : "short";
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
  const left = hold.left();
  // By what was asked for it, and not by what was answered: an extension may be on its way, or its answer may be lost. A new
  // hold has a TTL of its own.
  if (suits(hold, Math.max(hold.mayLive, left), next, window, false) === "too much") return "yield";
  return suits(hold, left, next, window, false) === "enough" ? "pass" : "confirm-and-pass";
}
