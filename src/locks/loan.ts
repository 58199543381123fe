import type { LocalSemaphore } from "../util/local-semaphore.ts";
import type { Holding } from "./holding.ts";

/** A body's loan from its scope. It already counts as one more user of each lease. */
export class Loan {
  readonly #held: readonly Holding[];
  readonly #gates: LocalSemaphore[] = [];

  constructor(held: readonly Holding[]) {
    this.#held = held;
  }

  /**
   * Waits for the body's turn in each. If that fails, nothing remains borrowed. `turn`: returns the
   * gate through which the body came; null: it needed none.
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

  /** The body has ended, and has given its leases back. */
  end(): void {
    for (const gate of this.#gates) gate.leave();
  }

  /** There is no body. */
  async undo(): Promise<void> {
    this.end();
    await Promise.allSettled(this.#held.map(({ shared }) => shared.leave()));
  }
}
