import { LockLostError } from "../api/errors.ts";
import type { Events } from "../api/events.ts";
import type { MultiLease } from "../api/multi-lock.ts";
import { checkExtension } from "../api/options.ts";
import { RENAMED, refuseRenamedMethods } from "../api/renamed.ts";
import { telling } from "../api/stacks.ts";
import { onAbort } from "../util/abort.ts";
import { inspectAs } from "../util/print.ts";
import { quoteAll } from "../util/quote.ts";
import { endBlock, isFenced, type LeaseHandle } from "./lease.ts";

/** The handles of the members as one. */
export class MultiLeaseHandle implements MultiLease {
  readonly names: readonly string[];
  readonly #leases: readonly LeaseHandle[];
  readonly #events: Events;
  #tokens: ReadonlyMap<string, number> | undefined;
  #signal: AbortSignal | undefined;
  #wanted: AbortSignal | undefined;
  #unlocking: Promise<void> | null = null;
  /**
   * Removes its listeners from the members' signals, which may live longer: a member can be
   * borrowed.
   */
  #unlisten: (() => void)[] = [];

  /** `events`: receives the failure of a `using`. */
  constructor(leases: readonly LeaseHandle[], events: Events) {
    this.names = leases.map(({ name }) => name);
    this.#leases = leases;
    this.#events = events;
  }

  get tokens(): ReadonlyMap<string, number> {
    this.#tokens ??= new Map(
      this.#leases.flatMap((lease) => (isFenced(lease) ? [[lease.name, lease.token]] : [])),
    );
    return this.#tokens;
  }

  /** Reads those of the members, which are judged by the clock at each read: it follows them. */
  get signal(): AbortSignal {
    const signals = this.#leases.map(({ signal }) => signal);
    this.#signal ??= telling(this.#anyOf(signals));
    return this.#signal;
  }

  get wanted(): AbortSignal {
    this.#wanted ??= this.#anyOf(this.#leases.map(({ wanted }) => wanted));
    return this.#wanted;
  }

  #anyOf(signals: readonly AbortSignal[]): AbortSignal {
    const controller = new AbortController();
    for (const signal of signals) {
      // Only the first abort counts: a second one does nothing.
      if (signal.aborted) controller.abort(signal.reason);
      else if (!this.#unlocking) this.#unlisten.push(onAbort(signal, () => controller.abort(signal.reason)));
    }
    return controller.signal;
  }

  get held(): boolean {
    return this.#leases.every((lease) => lease.held);
  }

  assertHeld(): void {
    for (const lease of this.#leases) lease.assertHeld();
  }

  get remaining(): number {
    return Math.min(...this.#leases.map((lease) => lease.remaining));
  }

  async extend(ms: number): Promise<void> {
    checkExtension(quoteAll(this.names), ms);
    this.assertHeld();
    await all(
      this.#leases.map((lease) => lease.extend(ms)),
      "extended",
    );
  }

  unlock(): Promise<void> {
    return this.leave();
  }

  /** Its user gives it back. @internal */
  leave(isThrown = true): Promise<void> {
    if (this.#unlocking) return this.#unlocking.catch(() => {});
    // The loss of one member is that of the whole: its user knows.
    const isTold = this.#leases.some((lease) => lease.isTold);
    // All at once, so that one command can release several.
    this.#unlocking = all(
      this.#leases.map((lease) => lease.leave(isThrown)),
      "released",
      (error) => !(isTold && error instanceof LockLostError),
    ).finally(() => {
      for (const unlisten of this.#unlisten.splice(0)) unlisten();
    });
    return this.#unlocking.then();
  }

  /** Its printed form. Reads no signal, so none is made. */
  toJSON(): object {
    return {
      names: this.names,
      tokens: Object.fromEntries(this.tokens),
      held: this.held,
      remaining: this.remaining,
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave().catch((error: unknown) => endBlock(error, this.#events));
  }

  [Symbol.dispose](): void {
    this.leave(false).catch((error: unknown) => this.#events.report(error));
  }
}

/** Waits for all of them, and then throws those failures that count. */
async function all(
  work: readonly Promise<void>[],
  what: string,
  counts = (_: unknown): boolean => true,
): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  const errors = failures.filter(counts);
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1)
    throw new AggregateError(
      errors,
      `${errors.length} of ${work.length} locks were not ${what}: ${errors.map(({ message }) => message).join(" ")}`,
    );
}

inspectAs(MultiLeaseHandle, "MultiLease");
refuseRenamedMethods(MultiLeaseHandle, RENAMED.multiLease);
