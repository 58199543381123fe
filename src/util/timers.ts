import { clientTimer } from "./client-timer.ts";
import { clocks } from "./clock.ts";
import { clearImmediate, clearTimeout, setImmediate } from "./real-timers.ts";

/** The longest time a Node timer can wait is 2^31-1; longer waits are re-armed. */
export const TIMER_MAX = 2 ** 31 - 1;

/** A time at which something must be done. Belongs to one place that sets and clears it. */
export abstract class Timer {
  /**
   * When it rings on the monotonic clock (Infinity: it was cleared), and its place in the heap (-1: it
   * is not there). Only Timers writes them.
   */
  at = Number.POSITIVE_INFINITY;
  index = -1;

  /** `at`: the time for which it was set. */
  abstract ring(at: number): unknown;
}

/** Will it ring? */
export const isSet = ({ at, index }: Pick<Timer, "at" | "index">): boolean =>
  index >= 0 && at !== Number.POSITIVE_INFINITY;

/** An alarm that calls a function. */
export class CallTimer extends Timer {
  readonly ring: (at: number) => unknown;

  constructor(ring: (at: number) => unknown) {
    super();
    this.ring = ring;
  }
}

/** How many cleared alarms may stay in the heap, besides as many as are set. */
const STALE = 32;

/**
 * All timers of a client with one Node timer: ten thousand parked waiters need no timer each. A
 * binary heap, ordered by keys. Nearly every alarm is cleared before its time, so clearing and
 * postponing one only write its time: its key stays until it comes first, or until most of the heap
 * is stale, and the heap is made anew. The Node timer is only ever re-armed for an earlier time. It
 * never keeps the process alive: waiting callers do that themselves.
 */
export class Timers {
  readonly #heap: Timer[] = [];
  /** Of each alarm in the heap: no later than its time. */
  readonly #keys: number[] = [];
  readonly #isPatient: boolean;
  /** How many are set. */
  size = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #armed = Number.POSITIVE_INFINITY;
  #isStopped = false;

  /**
   * `isPatient`: callbacks run after the replies and messages that came while this process was
   * paused, so that a reply in time does not count as late. The end of a lease waits for no input.
   */
  constructor(isPatient: boolean) {
    this.#isPatient = isPatient;
  }

  /** When the first one rings on the monotonic clock. */
  get next(): number {
    for (let first = this.#heap[0]; first && first.at !== this.#keys[0]; first = this.#heap[0])
      this.#postpone(this.#takeFirst());
    return this.#keys[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Rings the alarms that are due, after the clock was advanced. */
  look(): void {
    this.#fire();
  }

  /** None rings until `go()`: a test makes the client stand still, as a process may. */
  stop(): void {
    this.#isStopped = true;
    this.#disarm();
  }

  /** Rings those that were due meanwhile. */
  go(): void {
    this.#isStopped = false;
    this.#fire();
  }

  /** Sets or moves it. Infinity clears it. */
  set(alarm: Timer, at: number): void {
    if (at === Number.POSITIVE_INFINITY) {
      this.clear(alarm);
      return;
    }
    const { index } = alarm;
    if (index < 0 || alarm.at === Number.POSITIVE_INFINITY) this.size++;
    alarm.at = at;
    if (index < 0) this.#up(alarm, this.#heap.length, at);
    else if (at < (this.#keys[index] as number)) this.#up(alarm, index, at);
    if (at < this.#armed) this.#arm(at);
  }

  clear(alarm: Timer): void {
    if (!isSet(alarm)) return;
    alarm.at = Number.POSITIVE_INFINITY;
    this.size--;
    if (this.#heap.length > 2 * this.size + STALE) this.#renew();
  }

  close(): void {
    this.#disarm();
    for (const alarm of this.#heap.splice(0)) alarm.index = -1;
    this.#keys.length = this.size = 0;
  }

  #arm(at: number): void {
    if (this.#isStopped) return;
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
      while ((this.#keys[0] ?? Number.POSITIVE_INFINITY) <= now) {
        const first = this.#takeFirst();
        const { at } = first;
        if (at > now) this.#postpone(first);
        else {
          first.at = Number.POSITIVE_INFINITY;
          this.size--;
          first.ring(at);
        }
      }
    } finally {
      const { next } = this;
      if (next < this.#armed) this.#arm(next);
    }
  };

  // ---- the heap

  #takeFirst(): Timer {
    const first = this.#heap[0] as Timer;
    const last = this.#heap.pop() as Timer;
    const key = this.#keys.pop() as number;
    first.index = -1;
    if (last !== first) this.#down(last, 0, key);
    return first;
  }

  /** Its time has not come yet; or it was cleared. */
  #postpone(alarm: Timer): void {
    if (alarm.at !== Number.POSITIVE_INFINITY) this.#up(alarm, this.#heap.length, alarm.at);
  }

  /** Leaves out what was cleared. */
  #renew(): void {
    this.#keys.length = 0;
    for (const alarm of this.#heap.splice(0)) {
      alarm.index = -1;
      this.#postpone(alarm);
    }
  }

  /** Puts it at this index, or further up. */
  #up(alarm: Timer, from: number, key: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = this.#keys[parent] as number;
      if (above <= key) break;
      this.#put(this.#heap[parent] as Timer, index, above);
      index = parent;
    }
    this.#put(alarm, index, key);
  }

  #down(alarm: Timer, from: number, key: number): void {
    const keys = this.#keys;
    let index = from;
    for (;;) {
      let child = 2 * index + 1;
      if ((keys[child + 1] as number) < (keys[child] as number)) child++;
      const below = keys[child];
      if (below === undefined || below >= key) break;
      this.#put(this.#heap[child] as Timer, index, below);
      index = child;
    }
    this.#put(alarm, index, key);
  }

  #put(alarm: Timer, index: number, key: number): void {
    this.#heap[index] = alarm;
    this.#keys[index] = key;
    alarm.index = index;
  }
}
