import { STAY_FRESH } from "../support/stays.ts";

/** A lease, as far as it is watched. */
interface Watched {
  readonly token: number;
  readonly held: boolean;
}

interface Turn {
  readonly lease: Watched;
  readonly by: string;
  readonly at: number;
}

/**
 * ms that a turn may seem to begin later than it did: the reply to what took the lock away is read
 * late, too.
 */
const SLACK = 30;

/**
 * Sees every turn of the callers of one process at some locks. It is exact: nothing happens between
 * two statements, so while one lease says that it is held no other may be given.
 */
export class TurnWitness {
  readonly violations: string[] = [];
  turns = 0;
  readonly #inside = new Map<string, Set<Turn>>();
  readonly #highest = new Map<string, number>();
  /** When Redis was told to forget a lock, and when that was done. */
  readonly #forgotten = new Map<string, { from: number; to: number }[]>();

  /** A caller has the lock. Returns what says that it gives it back. */
  enter(name: string, by: string, lease: Watched): () => void {
    this.turns++;
    const turn = { lease, by, at: performance.now() };
    const inside = this.#inside.get(name) ?? new Set();
    this.#inside.set(name, inside);
    for (const other of inside)
      if (other.lease.held && lease.held && !this.#mayOverlap(name, other, turn))
        this.#found(name, turn, `beside ${other.by} with token ${other.lease.token}`);
    const highest = this.#highest.get(name) ?? 0;
    if (lease.token <= highest && !this.#isExcused(name, turn.at))
      this.#found(name, turn, `behind token ${highest}`);
    this.#highest.set(name, Math.max(highest, lease.token));
    inside.add(turn);
    return () => void inside.delete(turn);
  }

  /** Has Redis forget a lock. */
  async forgets(names: readonly string[], how: () => Promise<unknown>): Promise<void> {
    const span = { from: performance.now(), to: Number.POSITIVE_INFINITY };
    for (const name of names) this.#forgotten.set(name, [...(this.#forgotten.get(name) ?? []), span]);
    await how();
    span.to = performance.now();
  }

  /**
   * Of two turns the one with the smaller token is from before a loss: it began before anybody
   * could know of that.
   */
  #mayOverlap(name: string, one: Turn, other: Turn): boolean {
    const [before, after] = one.lease.token < other.lease.token ? [one, other] : [other, one];
    const losses = this.#forgotten.get(name) ?? [];
    return losses.some(({ from, to }) => after.at >= from && before.at <= to + STAY_FRESH + SLACK);
  }

  /** May a turn from before a loss begin now? */
  #isExcused(name: string, at: number): boolean {
    const losses = this.#forgotten.get(name) ?? [];
    return losses.some(({ from, to }) => at >= from && at <= to + STAY_FRESH + SLACK);
  }

  #found(name: string, { by, lease, at }: Turn, what: string): void {
    const losses = (this.#forgotten.get(name) ?? []).map(({ to }) => `${(at - to).toFixed(1)} ms ago`);
    const last = losses.at(-1);
    this.violations.push(
      `${name}: ${by} was given token ${lease.token} ${what}${last ? `; last forgotten ${last}` : ""}`,
    );
  }
}
