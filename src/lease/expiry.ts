import { SHORT_LEASE } from "../defaults.ts";
import type { Terms } from "../terms.ts";
import type { Hold } from "./hold.ts";

/** What ran out, and how long it was. `end`: of an explicit lease, on the monotonic clock. `longest`: the longest lease that was given, in ms. */
export function expiryOf(
  { terms, since, hold }: { readonly terms: Terms; readonly since: number; readonly hold: Hold },
  end: number,
  longest: number,
): string {
  const { lease, watchdog, maxHold } = terms;
  if (hold.left() > 0 && since + maxHold < end) return `its maxHold of ${maxHold} ms was over.`;
  const hint = lease < SHORT_LEASE ? " A lease is in milliseconds." : "";
  const onClock = "ran out on this process's clock before it was";
  if (watchdog && hold.ttl < lease)
    return `the ${hold.ttl} ms for which it was handed over ${onClock} raised to its lease of ${lease} ms.${hint}`;
  return `its lease of ${longest} ms ${onClock} ${watchdog ? "renewed" : "released"}.${hint}`;
}
