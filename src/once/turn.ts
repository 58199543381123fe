import { released } from "../api/errors.ts";
import type { Turn } from "../api/once.ts";
import { thrownAt } from "../api/stacks.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { inspectAs } from "../util/print.ts";

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

  /** Its printed form. Reads no signal, so none is made. */
  toJSON(): object {
    const { name, begin, held } = this;
    return { name, begin, held };
  }
}

inspectAs(TurnHandle, "Turn");
