import { SHORT_LEASE } from "../../defaults.ts";
import { duration } from "../../util/duration.ts";
import type { Hold } from "./hold.ts";
import type { Terms } from "./terms.ts";

/**
 * Why a lease expired, and how long it was, in words. `end`: of an explicit lease, on the monotonic
 * clock. `longest`: the longest lease that was given, in ms.
 */
export function whyExpired(
  { terms, since, hold }: { readonly terms: Terms; readonly since: number; readonly hold: Hold },
  end: number,
  longest: number,
): string {
  const { lease, watchdog, maxHold } = terms;
  if (hold.left() > 0 && since + maxHold < end)
    return `its maxHold of ${duration(maxHold)} was over; give a longer one, or release it sooner`;
  const isShort = lease < SHORT_LEASE;
  if (!watchdog)
    return `its lease of ${duration(longest)} ran out before it was released; ${isShort ? "it is in milliseconds" : "give a longer one, or extend() it"}`;
  const why = isShort ? "it is in milliseconds" : "the event loop was blocked, or Redis did not answer";
  const ms = Math.min(hold.ttl, longest);
  return `its lease of ${duration(ms)} ran out before it was renewed; ${why}`;
}
