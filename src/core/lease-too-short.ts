import { LockUnavailableError } from "../api/errors.ts";
import { nounOf } from "../api/wording.ts";
import { OUTRUN_PATIENCE, OUTRUN_SHARE, OUTRUN_TRIES, SHORT_LEASE } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import type { LockKind } from "./lock-kind.ts";
import type { RedisHealth } from "./redis-health.ts";
import type { Waiter } from "./waiter.ts";

/**
 * Consecutive tries of one caller that got the lock so late that the lease was over. A slow moment
 * of a machine or network can cause that for any caller. If it repeats, Redis takes longer to
 * answer than the lease lasts: more tries would take the lock from others for nothing, without
 * limit.
 */
export class LeaseTooShort {
  readonly waiter: Waiter;
  readonly #kind: LockKind;
  /** How many tries. */
  tries = 0;
  readonly #since = clocks.mono.now();
  #fastest = Number.POSITIVE_INFINITY;

  constructor(waiter: Waiter, kind: LockKind) {
    this.waiter = waiter;
    this.#kind = kind;
  }

  /**
   * Counts one more, which Redis took `took` ms to answer. Returns whether it is time to give up.
   */
  add(took: number): boolean {
    this.tries++;
    this.#fastest = Math.min(this.#fastest, took);
    if (clocks.mono.now() - this.#since < OUTRUN_PATIENCE) return false;
    return this.tries >= OUTRUN_TRIES || this.#fastest > this.waiter.terms.lease * OUTRUN_SHARE;
  }

  /** For this caller, or another one with a lease of `lease` ms. */
  refusal(name: string, lease = this.waiter.terms.lease): LockUnavailableError {
    return outran(name, lease, this.#fastest, this.#kind);
  }
}

/** `lease` and `took`: in ms. */
export function outran(
  name: string,
  lease: number,
  took: number,
  kind: Parameters<typeof nounOf>[0],
): LockUnavailableError {
  const hint = lease < SHORT_LEASE ? "; it is in milliseconds" : "";
  return new LockUnavailableError(
    name,
    `its lease of ${duration(lease)} was over before the caller could have it: Redis took ${duration(took)} to answer, and a lease needs two answers${hint}`,
    undefined,
    nounOf(kind),
  );
}

/** The place of these callers. */
interface Outrunning {
  readonly health: RedisHealth;
  readonly name: string;
  readonly kind: LockKind;
  readonly line: Iterable<Waiter> & { refuse(caller: Waiter, error: unknown): void };
  leaseTooShort: LeaseTooShort | null;
  retry(failures: number): void;
}

/**
 * The lock was granted, but the caller's lease was over when the answer came: retries after a
 * pause, for a while. True: it has refused callers, and does not retry.
 */
export function tryAgain(place: Outrunning, caller: Waiter, took: number): boolean {
  const { health, name, kind, line } = place;
  if (place.leaseTooShort?.waiter !== caller) place.leaseTooShort = new LeaseTooShort(caller, kind);
  const { leaseTooShort } = place;
  if (!leaseTooShort.add(took)) {
    health.failed(leaseTooShort.refusal(name));
    place.retry(leaseTooShort.tries);
    return false;
  }
  // Every waiting caller with such a lease would fail the same way. One with a longer lease is
  // served at once.
  for (const other of [...line]) {
    const { lease } = other.terms;
    if (lease <= caller.terms.lease) line.refuse(other, leaseTooShort.refusal(name, lease));
  }
  return true;
}
