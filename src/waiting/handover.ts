// Which hold suits a caller. Protects that caller from a lease that is nearly over, and all others from a process that could
// crash with far too long a lease.
import { ENOUGH_EXPLICIT, ENOUGH_WATCHDOG, STAY_WINDOW, TOO_MUCH } from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { Terms } from "../terms.ts";

/**
 * May a hold with so many ms left be handed to these terms? "enough": as it is; "short": behind a claim; "too much": it would
 * block everybody else for long if this process died. `isDirect`: its own answer brought the full lease, of which a slow reply
 * may have eaten some. A grant or a pass brings what is left of another's time.
 */
export function suits(
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
