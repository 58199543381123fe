import type { Caller } from "../api/events.ts";
import { SELF_WAIT_LEASES } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { BatchedTry } from "./lock-kind.ts";

/** A caller that wants a lock, as others see it while it waits. */
export interface Waiting extends Caller {
  readonly terms: Terms;
  /** ms that it is willing to wait, and when its call began. */
  readonly wait: number;
  readonly since: number;
  /** It has its result. */
  readonly settled: boolean;
  /** It does not wait, except for a moment while a possibly idle holder is asked. */
  readonly isAsking: boolean;
  /** The warning about waiting for one's own client was given. */
  isWarned: boolean;
  /**
   * For a call in a scope: does it wait for that scope itself? Then that is reported instead of the
   * finding of `SelfWait`.
   */
  own: { readonly isOwn: boolean } | null;
  /** Its wait ends now, with this reason. */
  aborted(reason: unknown): void;
}

/** A caller's request. */
export interface AcquireRequest {
  readonly terms: Terms;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /**
   * The call that this is part of: it wants several locks, and reports itself when it gives up.
   * Left out: a call of its own.
   */
  readonly by?: Caller | undefined;
  /** How many local hand-offs may come before this caller gets it. Left out: its kind's number. */
  readonly passes?: number | undefined;
  /** It is one of several tries that are sent together, with `wait` 0. */
  readonly batchedTry?: BatchedTry | undefined;
  /** Receives the caller, for a call that may leave the queue because of its scope. */
  readonly came?: ((caller: Waiting) => void) | undefined;
}

/**
 * When a wait for a lock of the caller's own process has been long enough to call it a deadlock.
 */
export const selfWaitAt = ({ since, terms }: Waiting): number => since + SELF_WAIT_LEASES * terms.lease;

/**
 * The first of these callers that the code holding the lock may have made: a caller that came
 * before the holder got the lock is simply queueing.
 */
export function selfWaiter(callers: Iterable<Waiting>, lease: SharedLease): Waiting | null {
  for (const waiter of callers) if (waiter.since >= lease.since && !waiter.own?.isOwn) return waiter;
  return null;
}

/**
 * How many of these callers wait, and how many ms the first of them has waited; null: none waits.
 */
export function waitingHere(waiters: Iterable<Waiting>): { waiting: number; longest: number | null } {
  const waited = Array.from(waiters, ({ since }) => clocks.mono.now() - since);
  return { waiting: waited.length, longest: waited.length === 0 ? null : Math.max(...waited) };
}
