import * as timers from "node:timers";

/** The real one, which a test may replace. */
const { setImmediate } = timers;

/** What happens at one time: timers first, then input and output, then what comes in the next turn. */
export const TIMER = 0;
export const INPUT = 1;
export const NEXT_TURN = 2;

/** Somebody whose events wait while they are busy or stand still. */
export interface Actor {
  busyUntil: number;
  readonly isDead: boolean;
}

export interface Event {
  at: number;
  readonly phase: number;
  readonly order: number;
  readonly actor: Actor | null;
  readonly run: () => void;
  isOff: boolean;
}

/** In ms: how long a process works for one event. */
const WORK = 0.01;

/** In ms: an actor that is busy for longer stands still. */
const PAUSE = 1;

/** Of the real event loop. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Virtual time: a queue of events, in which nothing waits. */
export class Time {
  /** ms since the run began. */
  now = 0;
  /** How many events happened. */
  count = 0;
  /** How many events waited for longer than a process works for one. */
  heldUp = 0;
  /** A run with more events is wrong: nothing else would end it. */
  most = Number.POSITIVE_INFINITY;
  /** Whose event happens now; null: the network's, a server's, or none. */
  actor: Actor | null = null;
  #order = 0;
  readonly #heap: Event[] = [];

  /** `actor`: whose event it is; null: the network's or a server's. */
  at(at: number, phase: number, actor: Actor | null, run: () => void): Event {
    const event = { at: Math.max(at, this.now), phase, order: this.#order++, actor, run, isOff: false };
    this.#push(event);
    return event;
  }

  after(ms: number, run: () => void): Event {
    return this.at(this.now + ms, INPUT, null, run);
  }

  /**
   * Until this time, or until `isOver`. After each event of an actor its microtasks run.
   *
   * @throws Error after more than `most` events
   */
  async run(until: number, isOver: () => boolean): Promise<void> {
    while (this.#heap.length > 0 && !isOver()) {
      const event = this.#pop();
      if (event.at > until) {
        this.#push(event);
        break;
      }
      const { actor } = event;
      if (event.isOff || actor?.isDead) continue;
      if (actor && actor.busyUntil > event.at) {
        if (actor.busyUntil > event.at + PAUSE) this.heldUp++;
        event.at = actor.busyUntil;
        this.#push(event);
        continue;
      }
      this.now = event.at;
      if (++this.count > this.most)
        throw new Error(`more than ${this.most} events: something goes round in circles`);
      this.actor = actor;
      event.run();
      if (!actor) continue;
      actor.busyUntil = Math.max(actor.busyUntil, this.now + WORK);
      await turn();
      this.actor = null;
    }
    if (!isOver()) this.now = Math.max(this.now, until);
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    for (; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent] as Event, event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): Event {
    const heap = this.#heap;
    const first = heap[0] as Event;
    const last = heap.pop() as Event;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (isBefore(last, heap[child] as Event)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: Event, b: Event): boolean =>
  a.at !== b.at ? a.at < b.at : a.phase !== b.phase ? a.phase < b.phase : a.order < b.order;
