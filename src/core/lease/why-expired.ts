import { CLOCK_DRIFT, CLOCK_GRAIN, SHORT_LEASE } from "../../defaults.ts";
import { clocks } from "../../util/clock.ts";
import { duration } from "../../util/duration.ts";
import type { Hold } from "./hold.ts";
import type { Terms } from "./terms.ts";

interface Expired {
  readonly terms: Terms;
  readonly since: number;
  readonly hold: Hold;
  left(mono: number, wall: number): number;
}

/**
 * Why a lease expired, and how long it was, in words. `end`: of an explicit lease, on the monotonic
 * clock. `longest`: the longest lease that was given, in ms.
 */
export function whyExpired(lease: Expired, end: number, longest: number): string {
  const { since, hold, terms } = lease;
  const { watchdog, maxHold } = terms;
  const ms = watchdog ? Math.min(hold.ttl, longest) : longest;
  const of = `its lease of ${duration(ms)}`;
  // The monotonic clock measures; only the wall clock can be set, and go on while a machine is suspended.
  const early = lease.left(clocks.mono.now(), Number.NEGATIVE_INFINITY);
  // RACE: the two clocks never end at the same moment: the wall clock has whole milliseconds.
  if (early > CLOCK_GRAIN + ms * CLOCK_DRIFT)
    return `${of} is over by the wall clock, with ${duration(Math.round(early))} left by the monotonic clock; the wall clock was set forward, or the machine was suspended`;
  if (hold.left() > 0 && since + maxHold < end)
    return `its maxHold of ${duration(maxHold)} was over; give a longer one, or release it sooner`;
  const isShort = terms.lease < SHORT_LEASE;
  if (!watchdog)
    return `${of} ran out before it was released; ${isShort ? "it is in milliseconds" : "give a longer one, or extend() it"}`;
  const why = isShort ? "it is in milliseconds" : "the event loop was blocked, or Redis did not answer";
  return `${of} ran out before it was renewed; ${why}`;
}
