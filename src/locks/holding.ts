import type { SharedLease } from "../engine/lease/shared-lease.ts";
import { LocalSemaphore } from "../util/local-semaphore.ts";
import type { Place } from "./place.ts";

/** A lock that a scope holds. */
export class Holding {
  readonly key: string;
  readonly shared: SharedLease;
  readonly how: Taken;
  #gate: LocalSemaphore | null = null;

  constructor(key: string, shared: SharedLease, how: Taken) {
    this.key = key;
    this.shared = shared;
    this.how = how;
  }

  /** Through which nested bodies borrow it, one at a time. */
  get gate(): LocalSemaphore {
    this.#gate ??= new LocalSemaphore();
    return this.#gate;
  }

  /** For another lease of the same scope at this lock: bodies borrow both through one gate. */
  of(shared: SharedLease): Holding {
    const holding = new Holding(this.key, shared, this.how);
    holding.#gate = this.gate;
    return holding;
  }
}

/** How a lock was taken that a scope holds. */
export interface Taken {
  /** In the order of keys, or borrowed so: what comes behind it may be waited for, and nothing before it. */
  readonly isOrdered: boolean;
  /** May calls of the scope enter it? */
  readonly isReentrant: boolean;
  /** By which line of the application. Null: nobody needed it then. */
  readonly place: Place | null;
}
