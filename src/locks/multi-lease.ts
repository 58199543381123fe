import { quote, quoteAll } from "../errors.ts";
import type { Events } from "../events.ts";
import { checkExtension } from "../options.ts";
import { onAbort } from "../util/abort.ts";
import { printAs } from "../util/print.ts";
import type { Lease } from "./lease.ts";

/**
 * Several held locks with one end. As a lease, but for its tokens: one number cannot fence several resources.
 *
 * * `held`, `assertHeld()`: all of them. `remaining`: of the one that ends first.
 * * `signal` aborts when any of them is lost; the reason names it in `lockName`. The others stay held until `unlock()`.
 * * `wanted` aborts when somebody waits for any of them; its reason names that one in `lockName`.
 * * `extend(ms)` extends all, `unlock()` releases all, also when one of them fails. One failure is thrown as it is, several
 *   as an AggregateError, through which `isLockLost` looks.
 *
 * @example
 * await using lease = await locks.multiLock(["account:1", "account:2"]).lock();
 * await withdraw(1, { signal: lease.signal, fence: lease.token("account:1") });
 * await deposit(2, { signal: lease.signal, fence: lease.token("account:2") });
 */
export interface MultiLease extends Omit<Lease, "name" | "token"> {
  /** The locks' names, in the order in which they are taken. */
  readonly names: readonly string[];
  /**
   * The fencing token of one of them, for the resource that this lock protects.
   *
   * @throws RangeError when no lock of this lease has the name.
   */
  token(name: string): number;
}

/** The handles of the members as one. */
export class MultiLeaseHandle implements MultiLease {
  readonly names: readonly string[];
  readonly #leases: readonly Lease[];
  readonly #events: Events;
  #signal: AbortSignal | undefined;
  #wanted: AbortSignal | undefined;
  #unlocking: Promise<void> | null = null;
  /** Takes its listeners off the members' signals, which may live longer: a member can be borrowed. */
  #unlisten: (() => void)[] = [];

  /** `events`: where the failure of a `using` goes. */
  constructor(leases: readonly Lease[], events: Events) {
    this.names = leases.map(({ name }) => name);
    this.#leases = leases;
    this.#events = events;
  }

  token(name: string): number {
    const lease = this.#leases.find((lease) => lease.name === name);
    if (lease) return lease.token;
    throw new RangeError(
      `Cannot tell the token of ${quote(String(name))}: this lease is of ${quoteAll(this.names)}`,
    );
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#anyOf(({ signal }) => signal);
    return this.#signal;
  }

  get wanted(): AbortSignal {
    this.#wanted ??= this.#anyOf(({ wanted }) => wanted);
    return this.#wanted;
  }

  #anyOf(signalOf: (lease: Lease) => AbortSignal): AbortSignal {
    const controller = new AbortController();
    for (const lease of this.#leases) {
      const signal = signalOf(lease);
      // Only the first one counts: a second abort does nothing.
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
    if (this.#unlocking) return this.#unlocking.catch(() => {});
    // In one go: what one command can release is released by one.
    this.#unlocking = all(
      this.#leases.map((lease) => lease.unlock()),
      "released",
    ).finally(() => {
      for (const unlisten of this.#unlisten.splice(0)) unlisten();
    });
    return this.#unlocking.then();
  }

  /** What is printed. It asks for no signal, so none is made. */
  toJSON(): object {
    const tokens = Object.fromEntries(this.#leases.map(({ name, token }) => [name, token]));
    return { names: this.names, tokens, held: this.held, remaining: this.remaining };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.unlock();
  }

  [Symbol.dispose](): void {
    this.unlock().catch((error: unknown) => this.#events.report(error));
  }
}

/** Waits for all of them, and then throws what failed. */
async function all(work: readonly Promise<void>[], what: string): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  const errors = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1)
    throw new AggregateError(
      errors,
      `${errors.length} of ${work.length} locks were not ${what}: ${errors.map(({ message }) => message).join(" ")}`,
    );
}

printAs(MultiLeaseHandle, "MultiLease");
