import { released } from "../errors.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { printAs } from "../util/print.ts";
import { thrownAt } from "../util/stacks.ts";

/** What the body of `locks.runOnce` knows of its run. */
export interface Turn {
  /** The name that runs once per interval. */
  readonly name: string;
  /** When this run began, by the server's clock, in ms since 1970. With `aligned` it says which slot it is. */
  readonly begin: number;
  /**
   * Aborts with a LockLostError as soon as another process may run the body as well: the turn was not renewed in time, or it is
   * gone from Redis. Pass it on to all that can stop.
   */
  readonly signal: AbortSignal;
  /** Is the turn surely ours at this moment? Computed from both clocks, without asking Redis. */
  readonly held: boolean;
  /**
   * The line to put before what cannot be taken back: it knows of a deadline that passed before any timer could fire.
   *
   * @throws LockLostError when the turn is lost; LockError `LOCK_RELEASED` when the body has ended.
   */
  assertHeld(): void;
  /** ms until the turn is lost unless it is renewed; 0 when it is not held. */
  readonly remaining: number;
}

/**
 * What became of a call of `locks.runOnce`. `running`: another one runs the body now, or has crashed in it or thrown less than a lease
 * ago, which Redis does not tell apart; false: it ran in this interval. `remaining`: ms until the next run may begin; while one runs, until its lease ends, which is
 * renewed.
 */
export type OnceResult<T> =
  | { readonly ran: true; readonly value: T }
  | {
      readonly ran: false;
      readonly value?: undefined;
      readonly running: boolean;
      readonly remaining: number;
    };

/** The body's view of the lease of its turn. */
export class TurnHandle implements Turn {
  readonly name: string;
  readonly begin: number;
  readonly #lease: SharedLease;

  constructor(lease: SharedLease) {
    this.name = lease.name;
    this.begin = Math.floor(lease.token / 1_000);
    this.#lease = lease;
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  get held(): boolean {
    return this.#lease.held;
  }

  assertHeld(): void {
    if (!this.#lease.ended && this.#lease.expire()) return;
    throw thrownAt(this.#lease.loss ?? released(this.name, this.#lease.noun), this.assertHeld);
  }

  get remaining(): number {
    return this.held ? Math.max(0, Math.floor(this.#lease.left())) : 0;
  }

  /** What is printed. It asks for no signal, so none is made. */
  toJSON(): object {
    const { name, begin, held } = this;
    return { name, begin, held };
  }
}

printAs(TurnHandle, "Turn");
