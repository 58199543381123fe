import { type Alarms, CallAlarm } from "../alarms.ts";

/** When a search that waits looks again. */
export class Nap {
  readonly #alarms: Alarms;
  readonly #alarm: CallAlarm;
  /** Not later than this, however long it is to sleep; told also while it is looking just now. */
  #latest = Number.POSITIVE_INFINITY;

  constructor(alarms: Alarms, over: () => void) {
    this.#alarms = alarms;
    this.#alarm = new CallAlarm(over);
  }

  /** Until this time on the monotonic clock. */
  until(at: number): void {
    this.#alarms.set(this.#alarm, at);
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
    this.#alarms.clear(this.#alarm);
  }

  /** It waits no longer. Returns when it would have looked; Infinity: nobody knows. */
  end(): number {
    const dueAt = this.#alarm.index >= 0 ? this.#alarm.at : this.#latest;
    this.#latest = Number.POSITIVE_INFINITY;
    this.interrupt();
    return dueAt;
  }
}
