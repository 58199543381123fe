import { acquiring } from "../../api/channels.ts";
import { type Caller, type Events, fenceOf, type LockEvent, ofCall } from "../../api/events.ts";
import { type GiveUpReason, reasonOf, SERVED } from "../../api/give-up.ts";
import type { SharedLease } from "../../core/lease/shared-lease.ts";
import { clocks } from "../../util/clock.ts";
import { OpenHolds } from "./open-holds.ts";

/**
 * Follows one call, from its start to the lock and to the lock's end. It must be made and used in
 * the caller's asynchronous context, because there a subscriber finds the span that the call
 * belongs to.
 */
export class Following {
  readonly #message: AcquireMessage;
  readonly #since = clocks.mono.now();
  readonly #holds: OpenHolds;

  constructor(events: Events, caller: Caller, { name, wait, lease }: Asked) {
    this.#message = { client: events.client, ...ofCall({ name, ...caller }), wait, lease };
    // From now on the ends of holds are reported, even if no listener is added.
    events.isUsed = true;
    this.#holds = events.holds instanceof OpenHolds ? events.holds : new OpenHolds(events.client);
    events.holds = this.#holds;
  }

  /** Runs the synchronous part of the call. */
  begin<T>(work: () => T): T {
    const message = this.#message;
    const begun = acquiring.start.runStores(message, work);
    acquiring.end.publish(message);
    return begun;
  }

  /** The caller has these leases. `waitedFor`: ms; left out: until now. */
  got(leases: readonly SharedLease[], waitedFor = clocks.mono.now() - this.#since): void {
    const [first] = leases;
    this.#end("acquired", waitedFor, first && { token: fenceOf(first), passed: first.hold.passes > 0 });
    for (const lease of leases) this.#holds.begin(lease);
  }

  /**
   * The caller ended without the lock; null: another client held it; SERVED: it needs none.
   */
  gaveUp(error: unknown): void {
    const why = error === null ? (this.#message.wait > 0 ? "timeout" : "busy") : reasonOf(error);
    if (error !== null && error !== SERVED) {
      this.#message.error = error;
      acquiring.error.publish(this.#message);
    }
    this.#end(why, clocks.mono.now() - this.#since);
  }

  #end(outcome: AcquireMessage["outcome"], waitedFor: number, more?: Partial<AcquireMessage>): void {
    const message = Object.assign(this.#message, { outcome, waitedFor }, more);
    acquiring.asyncStart.publish(message);
    acquiring.asyncEnd.publish(message);
  }
}

/**
 * The message about a call that wants a lock: the same object from beginning to end. Times are in
 * ms.
 */
interface AcquireMessage extends LockEvent {
  /** The client's id. */
  readonly client: string;
  readonly wait: number;
  readonly lease: number;
  /** At its end. */
  outcome?: "acquired" | GiveUpReason;
  waitedFor?: number;
  /** Null: its kind has none. */
  token?: number | null;
  /** It came from another caller of this process, without a round trip. */
  passed?: boolean;
  /** What the call rejects with. */
  error?: unknown;
}

/** What a call asks for. */
interface Asked {
  readonly name: string;
  readonly wait: number;
  /** ms */
  readonly lease: number;
}

/**
 * Follows a call. `work` does the call's work; it reports at once which leases it got. Resolves and
 * rejects as `work` does. `without`: why a call has none that resolves with that result; see
 * `Following.gaveUp`.
 */
export function follow<T>(
  events: Events,
  caller: Caller,
  asked: Asked,
  work: (got: (lease: SharedLease) => void) => Promise<T>,
  without: (result: T) => unknown = () => null,
): Promise<T> {
  const one = new Following(events, caller, asked);
  const since = clocks.mono.now();
  const leases: SharedLease[] = [];
  let waited = 0;
  const got = (lease: SharedLease): void => {
    waited = clocks.mono.now() - since;
    leases.push(lease);
  };
  // After the answer, which is read outside the caller's context; this is the caller's context
  // again.
  return one
    .begin(() => work(got))
    .then(
      (result) => {
        if (leases.length > 0) one.got(leases, waited);
        else one.gaveUp(without(result));
        return result;
      },
      (error: unknown) => {
        one.gaveUp(error);
        throw error;
      },
    );
}
