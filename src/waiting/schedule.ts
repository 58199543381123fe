import {
  ENOUGH_EXPLICIT,
  ENOUGH_WATCHDOG,
  EXPIRY_JITTER,
  LEASE_TIME,
  PASS_TIME,
  PATIENCE_MIN,
  PATIENCE_PERIODS,
  RECHECK_SPREAD,
  RECHECKS,
  RETRY_MAX,
  RETRY_MIN,
  SPIN_LAST_TRY,
  SPIN_MAX,
  SPIN_REST,
  SPIN_SPREAD,
  SUBSCRIBED_SOON,
  TOO_MUCH,
  UNKNOWN_POSITION,
} from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { Terms } from "../options.ts";
import { between, doubling } from "../util/random.ts";

/** The nominal re-check period at a place in the queue, in ms. */
function period(position: number | null): number {
  const at = position ?? UNKNOWN_POSITION;
  return RECHECKS.find((tier) => at < tier.before)?.period ?? PATIENCE_MIN;
}

/** How long a queue entry may stand: three periods, and never so short that one late re-check loses the place. */
export function patience(position: number | null): number {
  return Math.max(PATIENCE_MIN, PATIENCE_PERIODS * period(position));
}

/** The longest that a queue entry may stand after the last command that named it, in ms. */
export const LONGEST_PATIENCE = patience(Number.MAX_SAFE_INTEGER);

/**
 * How long to sleep before looking again, in ms. By position where Redis keeps a queue; without one only the holder's
 * TTL can end the wait. `asked` is false for a hold that was just queued: the server gave it the shortest patience, so
 * even the last of a long queue must be back before that is over.
 */
export function sleep(ttl: number, position: number | null, asked: boolean): number {
  // A key without TTL (only others write such) ends by a message, or is seen to be gone at the latest after LEASE_TIME.
  const expiry = Math.max(0, ttl === Number.POSITIVE_INFINITY ? LEASE_TIME : ttl) + between(1, EXPIRY_JITTER);
  if (position === null) return expiry;
  const spread = between(1 - RECHECK_SPREAD, 1 + RECHECK_SPREAD);
  // Only the first few look for a holder that crashed; if everybody did, a lock with short leases would be stormed.
  if (position < RECHECKS[0].before) return Math.min(expiry, RECHECKS[0].period * spread);
  return period(asked ? position : UNKNOWN_POSITION) * spread;
}

/** When a caller must be tried for at the latest, to have its answer in time. */
export const lastTryOf = ({ deadline }: { readonly deadline: number }): number => deadline - SPIN_LAST_TRY;

/** The soonest of these times that is still to come. */
export function lastTry(callers: Iterable<{ readonly deadline: number }>): number {
  const now = performance.now();
  let soonest = Number.POSITIVE_INFINITY;
  for (const caller of callers) {
    const at = lastTryOf(caller);
    if (at > now) soonest = Math.min(soonest, at);
  }
  return soonest;
}

/**
 * How long a process keeps off a lock without messages after a turn of so many ms. Whole ms, by chance up or down: a
 * timer knows no others, and turns shorter than one must not pay with a whole one each.
 */
export function rest(held: number): number {
  const rest = Math.min(SPIN_MAX, held * SPIN_REST) * between(1 - SPIN_SPREAD, 1 + SPIN_SPREAD);
  return Math.floor(rest + between(0, 1));
}

/**
 * When a caller who came at `since`, and hears nothing yet, tries again: 100, 200, 400 … ms after he came, then every
 * 2 000. By his coming alone, so that who came first tries first.
 */
export function nextTry(since: number): number {
  const waited = performance.now() - since;
  let at = SUBSCRIBED_SOON;
  while (at <= waited) at += Math.min(at, RETRY_MAX);
  return since + at;
}

/** After a failure: 50, 100, 200 … 2 000 ms, spread. */
export function backOff(failures: number): number {
  return doubling(failures, RETRY_MIN, RETRY_MAX, RECHECK_SPREAD);
}

/**
 * May a hold be handed to these terms as it is, without a claim? Its own answer (`isDirect`) brought the full lease, of
 * which a slow reply may have eaten some; a grant or a pass brings what is left of another's time.
 */
export function isEnough(hold: Hold, terms: Terms, window: number, isDirect: boolean): boolean {
  const left = hold.validity.left();
  if (isDirect) return hold.ttl >= terms.lease && left >= ENOUGH_WATCHDOG * terms.lease;
  return (
    left >= (terms.watchdog ? ENOUGH_WATCHDOG * Math.min(terms.lease, window) : ENOUGH_EXPLICIT * terms.lease)
  );
}

/** Does it outlive the lease that is wanted by far? Then it would block everybody else if this process died. */
export function isTooMuch(hold: Hold, terms: Terms, window: number): boolean {
  return isFarBeyond(hold.validity.left(), terms, window);
}

function isFarBeyond(ms: number, { lease }: Terms, window: number): boolean {
  return ms > TOO_MUCH * lease && ms > window;
}

/** What to do with a hold when its holder leaves and somebody in this process waits. */
export function handOver(
  hold: Hold,
  next: Terms,
  passes: number,
  window: number,
): "pass" | "claim" | "yield" {
  if (hold.passes >= passes || performance.now() - hold.ownedAt >= PASS_TIME) return "yield";
  // By what was asked for it, and not by what was answered: an extension may be on its way, or its answer may be lost.
  // Passed on, the hold would block everybody else for all of that if this process died. A new hold has a TTL of its own.
  if (isFarBeyond(Math.max(hold.mayLive, hold.validity.left()), next, window)) return "yield";
  return isEnough(hold, next, window, false) ? "pass" : "claim";
}
