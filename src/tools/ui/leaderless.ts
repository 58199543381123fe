/** ms without a look after which nothing is known of the time between. */
const GAP = 60_000;

/**
 * How long elections have had candidates and no leader, as far as the looks have shown it: Redis
 * does not say when a term ended, and the candidates may have stood by for days before.
 */
export class Leaderless {
  /** By name, when a look found it so first. Of the last look, and of the one under way. */
  #known: ReadonlyMap<string, number> = new Map();
  #next = new Map<string, number>();
  #ended = 0;

  /** A look begins. One that fails shows nothing. */
  begin(): void {
    if (performance.now() - this.#ended > GAP) this.#known = new Map();
    this.#next = new Map();
  }

  /** The look under way has found it so. Returns for how many ms it has been. */
  found(name: string): number {
    const now = performance.now();
    const since = this.#known.get(name) ?? now;
    this.#next.set(name, since);
    return Math.round(now - since);
  }

  end(): void {
    this.#known = this.#next;
    this.#ended = performance.now();
  }
}
