import { holding } from "../../api/channels.ts";
import type { LockLostError } from "../../api/errors.ts";
import { type FollowedHolds, type LockEvent, ofHolder } from "../../api/events.ts";
import type { SharedLease } from "../../core/lease/shared-lease.ts";
import { clocks } from "../../util/clock.ts";
import { Context } from "../../util/context.ts";
import { warn } from "../../util/warn.ts";

/** The holds of a client that have begun since an observer subscribed to `tracing:holdfast:hold`. */
export class OpenHolds implements FollowedHolds {
  readonly #client: string;
  readonly #open = new Map<string, OpenHold>();

  constructor(client: string) {
    this.#client = client;
  }

  /** Must be called in the caller's context. */
  begin(lease: SharedLease): void {
    if (!holding.hasSubscribers) return;
    const message: HoldMessage = {
      client: this.#client,
      ...ofHolder(lease),
      lease: lease.terms.lease,
      around: null,
    };
    const place = holding.start.runStores(message, () => new Context());
    holding.end.publish(message);
    this.#open.set(keyOf(lease), { message, place });
    // RACE: it was lost before the caller knew that it had it.
    if (lease.loss || lease.ended)
      this.ended({ ...message, heldFor: clocks.mono.now() - lease.since }, lease.loss);
  }

  within<T>({ call, name }: Pick<LockEvent, "call" | "name">, body: () => T): T {
    const hold = this.#open.get(keyOf({ call, name }));
    if (!hold) return body();
    const { around } = hold.message;
    return hold.place.run(() => (around ? bodyIn(around, body) : body()));
  }

  ended(told: LockEvent & { readonly heldFor: number }, error: LockLostError | null): void {
    const key = keyOf(told);
    const hold = this.#open.get(key);
    // A loss that its release has found is reported twice.
    if (!hold || !this.#open.delete(key)) return;
    const { message, place } = hold;
    message.heldFor = told.heldFor;
    place.run(() => {
      if (error) {
        message.error = error;
        holding.error.publish(message);
      }
      holding.asyncStart.publish(message);
      holding.asyncEnd.publish(message);
    });
    place.end();
  }
}

/** The message about a hold: the same object from beginning to end. */
interface HoldMessage extends LockEvent {
  /** The client's id. */
  readonly client: string;
  /** Null: its kind has none. */
  readonly token: number | null;
  /** ms */
  readonly lease: number;
  /** Set by a subscriber of `start` that wants to run the body in its own context. */
  around: ((body: () => unknown) => unknown) | null;
  /** ms; at its end. */
  heldFor?: number;
  error?: LockLostError;
}

interface OpenHold {
  readonly message: HoldMessage;
  /** The caller's asynchronous context, with the stores that subscribers have bound. */
  readonly place: Context;
}

/**
 * Runs the body once, and returns its outcome. RACE: a subscriber that throws, or calls the body
 * twice or not at all, must not affect the lock.
 */
function bodyIn<T>(around: (body: () => unknown) => unknown, body: () => T): T {
  let outcome: { readonly value: T } | { readonly error: unknown } | null = null;
  const once = (): T => {
    try {
      outcome ??= { value: body() };
    } catch (error) {
      outcome = { error };
    }
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  };
  try {
    const returned = around(once);
    // Its result is unused: usually it is what the body returned.
    if (returned instanceof Promise) returned.catch(() => {});
  } catch (error) {
    const { error: own } = (outcome ?? {}) as { readonly error?: unknown };
    if (error !== own) warn(error instanceof Error ? error : String(error));
  }
  return once();
}

const keyOf = ({ call, name }: Pick<LockEvent, "call" | "name">): string => `${call} ${name}`;
