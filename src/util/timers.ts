import { clientTimer } from "./client-timer.ts";
import { clocks } from "./clock.ts";
import { clearImmediate, clearTimeout, setImmediate } from "./real-timers.ts";

/** The longest time a Node timer can wait is 2^31-1; longer waits are re-armed. */
export const TIMER_MAX = 2 ** 31 - 1;

/** A time at which something must be done. Belongs to one place that sets and clears it. */
export abstract class Timer {
  /**
   * When it rings on the monotonic clock, and its place in the heap (-1: not set). Only Timers
   * writes them.
   */
  at = Number.POSITIVE_INFINITY;
  index = -1;

  abstract ring(): unknown;
}

/** An alarm that calls a function. */
export class CallTimer extends Timer {
  readonly ring: () => unknown;

  constructor(ring: () => unknown) {
    super();
    this.ring = ring;
  }
}

/**
 * All timers of a client with one Node timer: ten thousand parked waiters need no timer each. A
 * binary heap; clearing an alarm is O(log n), and the timer is only ever re-armed for an earlier
 * time. The timer never keeps the process alive: waiting callers do that themselves.
 */
export class Timers {
  readonly #heap: Timer[] = [];
  readonly #isPatient: boolean;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #armed = Number.POSITIVE_INFINITY;

  /**
   * `isPatient`: callbacks run after the replies and messages that came while this process was
   * paused, so that a reply in time does not count as late. The end of a lease waits for no input.
   */
  constructor(isPatient: boolean) {
    this.#isPatient = isPatient;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** When the first one rings on the monotonic clock. */
  get next(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Rings the alarms that are due, after the clock was advanced. */
  look(): void {
    this.#fire();
  }

  /** Sets or moves it. Infinity clears it. */
  set(alarm: Timer, at: number): void {
    if (alarm.index >= 0) this.#remove(alarm);
    if (at === Number.POSITIVE_INFINITY) return;
    alarm.at = at;
    alarm.index = this.#heap.length;
    this.#heap.push(alarm);
    this.#up(alarm);
    if (at < this.#armed) this.#arm(at);
  }

  clear(alarm: Timer): void {
    if (alarm.index >= 0) this.#remove(alarm);
  }

  close(): void {
    this.#disarm();
    for (const alarm of this.#heap.splice(0)) alarm.index = -1;
  }

  #arm(at: number): void {
    this.#disarm();
    this.#armed = at;
    const delay = Math.min(Math.max(1, Math.ceil(at - clocks.mono.now())), TIMER_MAX);
    this.#timer = clientTimer(this.#isPatient ? this.#read : this.#fire, delay);
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    this.#armed = Number.POSITIVE_INFINITY;
  }

  /** Pending input is read first. */
  readonly #read = (): void => {
    this.#immediate = setImmediate(this.#fire);
  };

  readonly #fire = (): void => {
    this.#disarm();
    const now = clocks.mono.now();
    try {
      for (let first = this.#heap[0]; first && first.at <= now; first = this.#heap[0]) {
        this.#remove(first);
        first.ring();
      }
    } finally {
      const next = this.#heap[0];
      if (next && next.at < this.#armed) this.#arm(next.at);
    }
  };

  #remove(alarm: Timer): void {
    const last = this.#heap.pop();
    if (last && last !== alarm) {
      last.index = alarm.index;
      this.#heap[last.index] = last;
      this.#up(last);
      this.#down(last);
    }
    alarm.index = -1;
  }

  #up(alarm: Timer): void {
    while (alarm.index > 0) {
      const parent = this.#heap[(alarm.index - 1) >> 1];
      if (!parent || parent.at <= alarm.at) return;
      this.#swap(parent, alarm);
    }
  }

  #down(alarm: Timer): void {
    for (;;) {
      const left = this.#heap[2 * alarm.index + 1];
      const right = this.#heap[2 * alarm.index + 2];
      const child = left && right && right.at < left.at ? right : left;
      if (!child || child.at >= alarm.at) return;
      this.#swap(alarm, child);
    }
  }

  #swap(upper: Timer, lower: Timer): void {
    const index = upper.index;
    upper.index = lower.index;
    lower.index = index;
    this.#heap[upper.index] = upper;
    this.#heap[lower.index] = lower;
  }
}
