import type { Leader } from "../api/election.ts";
import { ClientClosedError } from "../api/errors.ts";
import { onAbort } from "../util/abort.ts";
import type { Observation, Watcher } from "./observation.ts";

type Result = IteratorResult<Leader | null, undefined>;

interface Caller {
  resolve(result: Result): void;
  reject(error: Error): void;
}

const DONE: Result = { done: true, value: undefined };

/**
 * One observer: yields the leader whenever it differs from the last one yielded. Protects a slow
 * consumer from a backlog: it stores only that one, and `next()` returns the present state.
 *
 * | state | true | leaves it by |
 * |---|---|---|
 * | unopened | nothing is subscribed or asked | `next()` → open · `return()`, signal → over |
 * | open | it watches the observation and its signal | `return()`, signal, the end of the client or of its connection → over |
 * | over | it keeps nothing alive; `next()` reports the end | – |
 */
export class Observer implements AsyncIterableIterator<Leader | null, undefined>, Watcher {
  readonly #open: () => Observation | null;
  readonly #signal: AbortSignal | undefined;
  #state: "unopened" | "open" | "over" = "unopened";
  #observation: Observation | null = null;
  #unlisten: (() => void) | undefined;
  /** The last value yielded; undefined: none. */
  #last: Leader | null | undefined;
  readonly #callers: Caller[] = [];
  /** Why it has ended, for the next caller. */
  #error: Error | null = null;

  /**
   * `open`: returns the view that all observers of the election share; null: the client is closed.
   */
  constructor(open: () => Observation | null, signal: AbortSignal | undefined) {
    this.#open = open;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    if (this.#state === "unopened") this.#begin();
    return new Promise((resolve, reject) => {
      this.#callers.push({ resolve, reject });
      if (this.#state === "over") this.#settle();
      else this.told();
    });
  }

  return(): Promise<Result> {
    this.ended(null);
    return Promise.resolve(DONE);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.ended(null);
    return Promise.resolve();
  }

  told(): void {
    for (let caller = this.#callers[0]; caller && this.#observation; caller = this.#callers[0]) {
      const { shown } = this.#observation;
      if (shown === undefined || isSame(shown, this.#last)) return;
      this.#last = shown;
      this.#callers.shift();
      caller.resolve({ done: false, value: shown });
    }
  }

  ended(error: Error | null): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#error = error;
    this.#unlisten?.();
    this.#observation?.leave(this);
    this.#observation = null;
    this.#settle();
  }

  #begin(): void {
    const observation = this.#signal?.aborted ? null : this.#open();
    if (!observation) {
      this.ended(this.#signal?.aborted ? null : new ClientClosedError(null));
      return;
    }
    this.#state = "open";
    this.#observation = observation;
    this.#unlisten = this.#signal && onAbort(this.#signal, () => this.ended(null));
    observation.join(this);
  }

  #settle(): void {
    for (const { resolve, reject } of this.#callers.splice(0)) {
      if (this.#error) reject(this.#error);
      else resolve(DONE);
      this.#error = null;
    }
  }
}

/** A term has one leader, so its token identifies that leader. */
const isSame = (one: Leader | null, other: Leader | null | undefined): boolean =>
  one === other || (!!one && one.token === other?.token && one.value === other.value);
