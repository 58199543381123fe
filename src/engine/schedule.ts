// When to try again, and when to look again from the queue. Protects queue entries from ending
// before their client has looked, grants from running out unseen, and Redis from waiters that all
// look at once. All times are ms.

import {
  EXPIRY_JITTER,
  LEASE_TIME,
  PATIENCE_MIN,
  PATIENCE_PERIODS,
  RECHECK_SPREAD,
  RECHECKS,
  RETRY_MAX,
  RETRY_MIN,
  SPIN_MAX,
  SPIN_REST,
  SPIN_SPREAD,
  SUBSCRIBED_SOON,
  UNKNOWN_POSITION,
} from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { between, doubling } from "../util/random.ts";

/** The nominal re-check period at a position in the queue. */
function period(position: number | null): number {
  const at = position ?? UNKNOWN_POSITION;
  return RECHECKS.find((tier) => at < tier.before)?.period ?? PATIENCE_MIN;
}

/** How long a queue entry may stand: three periods, and never so short that one late re-check loses it. */
export function entryTtl(position: number | null): number {
  return Math.max(PATIENCE_MIN, PATIENCE_PERIODS * period(position));
}

/** The longest that a queue entry may stand after the last command that named it. */
export const LONGEST_ENTRY_TTL = entryTtl(Number.MAX_SAFE_INTEGER);

/**
 * How long to sleep before looking again. By position where Redis keeps a queue; without one only
 * the holder's TTL can end the wait. `asked` is false for a hold that was just queued: the server
 * gave it the shortest time, so even the last of a long queue must be back before that is over.
 */
export function sleep(ttl: number, position: number | null, asked: boolean): number {
  // A key without TTL (only others write such) ends by a message, or is seen to be gone at the
  // latest after LEASE_TIME.
  const expiry = Math.max(0, ttl === Number.POSITIVE_INFINITY ? LEASE_TIME : ttl) + between(1, EXPIRY_JITTER);
  if (position === null) return expiry;
  const spread = between(1 - RECHECK_SPREAD, 1 + RECHECK_SPREAD);
  // Only the first few look for a holder that crashed; if everybody did, a lock with short leases
  // would be stormed.
  if (position < RECHECKS[0].before) return Math.min(expiry, RECHECKS[0].period * spread);
  return period(asked ? position : UNKNOWN_POSITION) * spread;
}

/**
 * How long a process keeps off a lock without messages after it had the lock for so many ms. Whole
 * ms, by chance up or down: a timer knows no others, and holds shorter than one must not pay with a
 * whole one each.
 */
export function cooldown(held: number): number {
  const rest = Math.min(SPIN_MAX, held * SPIN_REST) * between(1 - SPIN_SPREAD, 1 + SPIN_SPREAD);
  return Math.floor(rest + between(0, 1));
}

/**
 * When a caller that came at `since`, and hears nothing yet, tries again: 100, 200, 400 … ms after
 * it came, then every 2 000. By its coming alone, so that the caller that came first tries first.
 */
export function nextTry(since: number): number {
  const waited = clocks.mono.now() - since;
  let at = SUBSCRIBED_SOON;
  while (at <= waited) at += Math.min(at, RETRY_MAX);
  return since + at;
}

/** After a failure: 50, 100, 200 … 2 000 ms, spread. */
export function backOff(failures: number): number {
  return doubling(failures, RETRY_MIN, RETRY_MAX, RECHECK_SPREAD);
}
