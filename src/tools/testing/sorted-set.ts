/** Members with scores, in the order of scores, then of bytes. */
export class SortedSet {
  readonly #scores = new Map<string, number>();
  readonly #order: string[] = [];

  get size(): number {
    return this.#order.length;
  }

  /** In order, without a copy. */
  get members(): readonly string[] {
    return this.#order;
  }

  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  /** Returns whether it is new. */
  set(member: string, score: number): boolean {
    const isNew = !this.remove(member);
    this.#order.splice(this.#placeOf(member, score), 0, member);
    this.#scores.set(member, score);
    return isNew;
  }

  remove(member: string): boolean {
    const score = this.#scores.get(member);
    if (score === undefined) return false;
    this.#order.splice(this.#placeOf(member, score), 1);
    return this.#scores.delete(member);
  }

  /** From 0; -1: it is no member. */
  rank(member: string): number {
    const score = this.#scores.get(member);
    return score === undefined ? -1 : this.#placeOf(member, score);
  }

  #placeOf(member: string, score: number): number {
    let low = 0;
    for (let high = this.#order.length; low < high; ) {
      const middle = (low + high) >> 1;
      const other = this.#order[middle] as string;
      const known = this.#scores.get(other) as number;
      if (known < score || (known === score && other < member)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
