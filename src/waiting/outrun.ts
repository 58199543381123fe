import { OUTRUN_PATIENCE, OUTRUN_SHARE, OUTRUN_TRIES, SHORT_LEASE } from "../defaults.ts";
import { LockUnavailableError } from "../errors.ts";
import type { Waiter } from "./waiter.ts";

/**
 * Tries of one caller in a row that brought the lock, but so late that the lease was over. A machine or a network that is
 * slow for a moment does that to any caller. When it goes on, Redis is slower than the lease: more tries would take the
 * lock from the others for nothing, for ever.
 */
export class Outrun {
  readonly waiter: Waiter;
  /** How many they are. */
  tries = 0;
  readonly #since = performance.now();
  #fastest = Number.POSITIVE_INFINITY;

  constructor(waiter: Waiter) {
    this.waiter = waiter;
  }

  /** One more, for which Redis took so many ms to answer. Returns whether it is time to give up. */
  add(took: number): boolean {
    this.tries++;
    this.#fastest = Math.min(this.#fastest, took);
    if (this.tries < 2 || performance.now() - this.#since < OUTRUN_PATIENCE) return false;
    return this.tries >= OUTRUN_TRIES || this.#fastest > this.waiter.terms.lease * OUTRUN_SHARE;
  }

  /** For this caller, or another one with a lease of so many ms. */
  refusal(name: string, lease = this.waiter.terms.lease): LockUnavailableError {
    return outran(name, lease, this.#fastest);
  }
}

/** `lease` and `took`: in ms. */
export function outran(name: string, lease: number, took: number): LockUnavailableError {
  const hint = lease < SHORT_LEASE ? ". A lease is in milliseconds" : "";
  return new LockUnavailableError(
    name,
    `its lease of ${lease} ms was over before the caller could have it: Redis took ${Math.ceil(took)} ms to answer, and a lease needs two answers${hint}`,
  );
}
