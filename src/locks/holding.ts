import type { SharedLease } from "../engine/lease/shared-lease.ts";
import { LocalSemaphore } from "../util/local-semaphore.ts";
import { harmless } from "../util/visible.ts";

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

/** How a lock was taken that a scope holds. */
export interface Taken {
  /** In the order of keys, or borrowed so: what comes behind it may be waited for, and nothing before it. */
  readonly isOrdered: boolean;
  /** May calls of the scope enter it? */
  readonly isReentrant: boolean;
  /** By which line of the application. Null: nobody needed it then. */
  readonly place: Place | null;
}

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

/** What a body borrows of what its scope holds. It is one user more of each by now. */
export class Loan {
  readonly #held: readonly Holding[];
  readonly #gates: LocalSemaphore[] = [];

  constructor(held: readonly Holding[]) {
    this.#held = held;
  }

  /**
   * Waits for the body's turn in each. When that fails, nothing is borrowed any more. `turn`:
   * returns the gate through which it came; null: it needed none.
   */
  async begin(turn: (one: Holding) => Promise<LocalSemaphore | null>): Promise<this> {
    try {
      for (const one of this.#held) {
        const gate = await turn(one);
        if (gate) this.#gates.push(gate);
      }
      return this;
    } catch (error) {
      await this.undo();
      throw error;
    }
  }

  /** The body is over, and has given its leases back. */
  end(): void {
    for (const gate of this.#gates) gate.leave();
  }

  /** There is no body. */
  async undo(): Promise<void> {
    this.end();
    await Promise.allSettled(this.#held.map(({ shared }) => shared.leave()));
  }
}
