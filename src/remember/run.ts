import type { ResultRun } from "../api/remember.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { lockHandle } from "../locks/lease.ts";
import { inspectAs } from "../util/print.ts";

/** The body's view of its run. */
export class RunHandle implements ResultRun {
  readonly name: string;
  readonly token: number;
  readonly #lease: ReturnType<typeof lockHandle>;

  constructor(shared: SharedLease) {
    this.name = shared.name;
    this.token = shared.token;
    this.#lease = lockHandle(shared);
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  get held(): boolean {
    return this.#lease.held;
  }

  get remaining(): number {
    return this.#lease.remaining;
  }

  assertHeld(): void {
    this.#lease.assertHeld();
  }

  /** Its printed form. Reads no signal, so none is made. */
  toJSON(): object {
    const { name, token, held } = this;
    return { name, token, held };
  }
}

inspectAs(RunHandle, "Run");
