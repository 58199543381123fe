/** The id of an entry: its ms, and its number among those of these ms. */
export type StreamId = readonly [ms: number, number: number];

interface Entry {
  readonly id: StreamId;
  readonly words: readonly string[];
}

const isLess = ([ms, number]: StreamId, [otherMs, other]: StreamId): boolean =>
  ms < otherMs || (ms === otherMs && number < other);

/** Entries in the order of their ids, to which only the end grows. */
export class Stream {
  #entries: Entry[] = [];
  #last: StreamId = [0, 0];

  /** The id of an entry that is added at this time, in ms: greater than the last one. */
  nextId(ms: number): StreamId {
    const [last, number] = this.#last;
    return ms > last ? [ms, 0] : [last, number + 1];
  }

  /** False: the id is not greater than that of an entry before it. */
  add(id: StreamId, words: readonly string[]): boolean {
    if (!isLess(this.#last, id)) return false;
    this.#last = id;
    this.#entries.push({ id, words });
    return true;
  }

  /** Keeps the last ones. */
  trim(most: number): void {
    if (this.#entries.length > most) this.#entries = this.#entries.slice(this.#entries.length - most);
  }

  /** Between two ids, both included. */
  range(from: StreamId, to: StreamId, most: number): readonly Entry[] {
    const first = this.#placeOf(from);
    const end = this.#placeOf([to[0], to[1] + 1]);
    return this.#entries.slice(first, Math.min(end, first + most));
  }

  /** Of the first entry that is not less. */
  #placeOf(id: StreamId): number {
    let low = 0;
    for (let high = this.#entries.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (isLess((this.#entries[middle] as Entry).id, id)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
