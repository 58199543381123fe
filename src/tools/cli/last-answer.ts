import { operatorsReason } from "../../inside.ts";

/**
 * After this many ms without an answer of Redis the display is old, even if a listing is under way.
 */
const LATE = 6_000;

/** When Redis last answered, and why it does not now. */
export class LastAnswer {
  /** On the monotonic clock; null: not yet. */
  #at: number | null = null;
  #trouble: string | null = null;

  came(): void {
    this.#at = performance.now();
    this.#trouble = null;
  }

  /** A listing failed. */
  failed(error: unknown): void {
    this.#trouble = operatorsReason(error);
  }

  /** No answer has come, and nothing has failed: nothing can be said of the locks. */
  get isAwaited(): boolean {
    return this.#at === null && this.#trouble === null;
  }

  /** The colour of the sentence; null: the display is up to date, as far as is known. */
  get colour(): "yellow" | "red" | null {
    if (this.#trouble !== null) return "red";
    return this.#at !== null && performance.now() - this.#at > LATE ? "yellow" : null;
  }

  get sentence(): string {
    const ago = this.#at === null ? null : Math.round((performance.now() - this.#at) / 1_000);
    const last = ago === null ? "No answer yet" : `Last answer ${ago} s ago`;
    return this.#trouble === null ? last : `${last}: ${this.#trouble}`;
  }
}
