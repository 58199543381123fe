/**
 * The texts that came last, `most` at least and twice as many at the most. While Redis makes its table smaller, SCAN names a key
 * again that it has named before, soon behind it: what has come long ago need not be remembered.
 */
export class Recent {
  readonly #most: number;
  #latest = new Set<string>();
  #before = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  /** False: it came before. */
  add(text: string): boolean {
    if (this.#latest.has(text) || this.#before.has(text)) return false;
    if (this.#latest.size === this.#most) {
      this.#before = this.#latest;
      this.#latest = new Set();
    }
    this.#latest.add(text);
    return true;
  }
}
