import { UNANSWERED } from "../defaults.ts";

/**
 * What the commands about one lock tell about Redis. "Somebody else holds it" is only said when Redis was heard saying
 * so: no command has failed since its last answer, and none is unanswered for long.
 */
export class RedisHealth {
  /** Failures in a row, and the last one. */
  failures = 0;
  failure: unknown;
  #unansweredSince: number | null = null;

  sending(): void {
    this.#unansweredSince ??= performance.now();
  }

  answered(): void {
    this.#unansweredSince = null;
    this.failures = 0;
    this.failure = undefined;
  }

  failed(error: unknown): void {
    this.#unansweredSince = null;
    this.failures++;
    this.failure = error;
  }

  get isDoubtful(): boolean {
    return (
      this.failures > 0 ||
      (this.#unansweredSince !== null && performance.now() - this.#unansweredSince > UNANSWERED)
    );
  }
}
