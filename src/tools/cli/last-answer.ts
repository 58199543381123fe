import { LockError } from "../../index.ts";

/**
 * ms without an answer of Redis after which what is shown is old, whatever becomes of the listing
 * that is under way.
 */
const LATE = 6_000;

/** When Redis answered last, and why it does not now. */
export class LastAnswer {
  /** On the monotonic clock; null: not yet. */
  #at: number | null = null;
  #trouble: string | null = null;

  came(): void {
    this.#at = performance.now();
    this.#trouble = null;
  }

  /** A listing has failed. What it was about is known: its cause is what there is to tell. */
  failed(error: unknown): void {
    const why = error instanceof LockError ? (error.cause ?? error) : error;
    this.#trouble = why instanceof Error ? why.message : String(why);
  }

  /** The colour of what is said; null: what is shown is what Redis says now, as far as anybody knows. */
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
