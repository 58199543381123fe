import { UNANSWERED } from "../defaults.ts";
import { clocks } from "../util/clock.ts";

/**
 * What the commands about one lock show about Redis. A caller gets "busy" only if Redis reported
 * it: no command has failed since its last answer, and none has been unanswered for long.
 */
export class RedisHealth {
  /** Failures in a row, and the last one. */
  failures = 0;
  failure: unknown;
  /** When the oldest unanswered command was sent, on the monotonic clock; null: none is unanswered. */
  #askedAt: number | null = null;
  /** When the last try or re-check that Redis has answered was sent, on the monotonic clock. */
  saidAt = Number.NEGATIVE_INFINITY;

  /** A command is sent at this time. */
  asked(at: number): void {
    this.#askedAt ??= at;
  }

  /** Redis has answered the try or re-check that was sent at this time. */
  said(at: number): void {
    this.saidAt = at;
    this.answered();
  }

  answered(): void {
    this.#askedAt = null;
    this.failures = 0;
    this.failure = undefined;
  }

  failed(error: unknown): void {
    this.#askedAt = null;
    this.failures++;
    this.failure = error;
  }

  get isDoubtful(): boolean {
    return this.failures > 0 || (this.#askedAt !== null && clocks.mono.now() - this.#askedAt > UNANSWERED);
  }
}
