import { UNANSWERED } from "../defaults.ts";
import { clocks } from "../util/clock.ts";

/**
 * What the commands about one lock tell about Redis. "Somebody else holds it" is only said when
 * Redis was heard saying so: no command has failed since its last answer, and none is unanswered
 * for long.
 */
export class RedisHealth {
  /** Failures in a row, and the last one. */
  failures = 0;
  failure: unknown;
  /**
   * When the first command was sent that is unanswered, on the monotonic clock; 0: none is. Written
   * where commands are sent.
   */
  askedAt = 0;

  /** When the last try or look was sent that Redis has answered, on the monotonic clock. */
  saidAt = Number.NEGATIVE_INFINITY;

  answered(): void {
    this.askedAt = 0;
    this.failures = 0;
    this.failure = undefined;
  }

  failed(error: unknown): void {
    this.askedAt = 0;
    this.failures++;
    this.failure = error;
  }

  get isDoubtful(): boolean {
    return this.failures > 0 || (this.askedAt !== 0 && clocks.mono.now() - this.askedAt > UNANSWERED);
  }
}
