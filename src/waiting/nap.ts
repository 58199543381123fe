import { CallTimer, type Timers } from "../util/timers.ts";

/** When a search that waits looks again. */
export class Nap {
  readonly #timers: Timers;
  readonly #alarm: CallTimer;
  /** Not later than this, however long it is to sleep; told also while it is looking just now. */
  #latest = Number.POSITIVE_INFINITY;

  constructor(timers: Timers, over: () => void) {
    this.#timers = timers;
    this.#alarm = new CallTimer(over);
  }

  /** Until this time on the monotonic clock. */
  until(at: number): void {
    this.#timers.set(this.#alarm, at);
  }

  /** So many ms, or until the latest time that was told. */
  sleep(delay: number): void {
    this.until(Math.min(performance.now() + delay, this.#latest));
    this.#latest = Number.POSITIVE_INFINITY;
  }

  /** Not later than this, from the next sleep on. Returns whether the present one would be too long. */
  before(at: number): boolean {
    this.#latest = Math.min(this.#latest, at);
    return this.#alarm.index < 0 || this.#alarm.at > at;
  }

  /** It is looking now. */
  interrupt(): void {
    this.#timers.clear(this.#alarm);
  }

  /** It waits no longer. Returns when it would have looked; Infinity: nobody knows. */
  end(): number {
    const dueAt = this.#alarm.index >= 0 ? this.#alarm.at : this.#latest;
    this.#latest = Number.POSITIVE_INFINITY;
    this.interrupt();
    return dueAt;
  }
}
