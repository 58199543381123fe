import { DEADLOCK_AFTER } from "../defaults.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { clocks } from "../util/clock.ts";
import { Timer } from "../util/timers.ts";
import { harmless } from "../util/visible.ts";
import type { LockManager } from "../waiting/lock-manager.ts";
import type { Waiter } from "../waiting/waiter.ts";

/** The line of the application that has called a method. Its text is made when it is read. */
export class Place {
  readonly stack = "";

  /** `below`: the method. */
  constructor(below: (...args: never[]) => unknown) {
    const limit = Error.stackTraceLimit;
    // An application may have frozen it.
    const isSet = Reflect.set(Error, "stackTraceLimit", 1);
    Error.captureStackTrace(this, below);
    if (isSet) Reflect.set(Error, "stackTraceLimit", limit);
  }

  toString(): string {
    try {
      return harmless(/^\s*at (.+)$/m.exec(String(this.stack))?.[1] ?? UNKNOWN);
    } catch {
      // Made by a function of the application, `Error.prepareStackTrace`.
      return UNKNOWN;
    }
  }
}

const UNKNOWN = "an unknown line";

/** What the call's scope has of a lock that it wants. */
interface Met {
  readonly shared: SharedLease;
  readonly how: { readonly place: Place | null };
}

/**
 * A call that waits in a scope. Where one side has `reentrant: false`, that scope may be what it waits for. Perhaps it is work of
 * another caller, which rightly waits; perhaps the code that holds the lock waits for it, and both wait without end. No one can
 * tell the two apart, so it is never refused, and told once for each place.
 */
export class OwnWait extends Timer {
  readonly #services: Pick<LockManager, "timers" | "selfWait">;
  readonly #place: Place | null;
  readonly #meets: () => Met | null;
  readonly #unwatch: (() => void) | null;
  readonly #since = clocks.mono.now();
  #waiter: Waiter | null = null;

  /** `meets`: what its scope has at this moment of the locks that it wants. `unwatch`: to be called at its end. */
  constructor(
    services: Pick<LockManager, "timers" | "selfWait">,
    place: Place | null,
    meets: () => Met | null,
    unwatch: (() => void) | null,
  ) {
    super();
    this.#services = services;
    this.#place = place;
    this.#meets = meets;
    this.#unwatch = unwatch;
    if (place) services.timers.set(this, this.#since + DEADLOCK_AFTER);
  }

  /** It has come to a lock. */
  came(waiter: Waiter): void {
    this.#waiter = waiter;
    waiter.own = this;
  }

  /** Does it wait for its own scope? */
  get isOwn(): boolean {
    return this.#meets() !== null;
  }

  end(): void {
    this.#unwatch?.();
    this.#services.timers.clear(this);
  }

  /** Its scope may have got the lock after it came, by another call: it is told 5 s after that. */
  ring(): void {
    const { timers, selfWait } = this.#services;
    const at = clocks.mono.now();
    const met = this.#meets();
    const due = Math.max(this.#since, met?.shared.since ?? at) + DEADLOCK_AFTER;
    if (at < due) timers.set(this, due);
    else if (met && this.#waiter) {
      const taken = met.how.place && `${met.how.place}`;
      selfWait.warnOfScope(met.shared.name, this.#waiter, at - this.#since, `${this.#place}`, taken);
    }
  }
}
