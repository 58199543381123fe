import type { LocalSemaphore } from "../util/local-semaphore.ts";
import type { Holding } from "./holding.ts";

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
