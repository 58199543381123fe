import { RECHECKS } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { queueMicrotask } from "../util/real-timers.ts";
import type { RedisHealth } from "./redis-health.ts";

/**
 * The queued holds of one client at one lock, by `lock` and by `fairLock`, in the order of the
 * queue. Only the first one sleeps and re-checks, and its re-check keeps all entries. Protects
 * Redis from n re-checks for n holds, and the entries from ending between two re-checks. Grants
 * come in order, so only the first can be missing its message.
 *
 * RACE: two places that re-check separately keep the same entries, each for as long as its own
 * position needs. The last re-check of the near one shortens what the far one has written; the near
 * one gets the lock, and the far one sleeps past the end of its entry.
 */
export class RecheckGroup {
  readonly #places = new Set<Place>();
  #first: Place | null = null;

  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  isFirst(place: Place): boolean {
    return this.#first === null || this.#first === place;
  }

  /** What the one that re-checks for all knows of Redis; null: none is queued. */
  get health(): RedisHealth | null {
    return this.#first?.health ?? null;
  }

  /**
   * A new entry has the shortest time to live: the first hold must re-check before that is over,
   * however far back the entry is.
   */
  add(place: Place): void {
    this.#places.add(place);
    if (this.#first) this.#first.lookBefore(clocks.mono.now() + RECHECKS[1].period);
    else this.#first = place;
  }

  /**
   * When the first goes, the next one re-checks when the first would have: so every period has a
   * re-check.
   */
  remove(place: Place, dueAt: number): void {
    const wasFirst = this.isFirst(place);
    if (!this.#places.delete(place) || !wasFirst) return;
    const [next = null] = this.#places;
    this.#first = next;
    if (!next) return;
    const now = clocks.mono.now();
    next.lookBefore(Math.min(dueAt, now + RECHECKS[0].period));
    // RACE: in a crowd with very short turns, each first place is granted the lock before its
    // re-check runs. That re-check then keeps no entries, and all of them would end. So the next
    // place re-checks in a microtask: the command is sent before the caller that got the lock can
    // give it back, and so runs in time.
    if (dueAt <= now) queueMicrotask(() => next.lookAgain());
  }
}

/** A hold in a queue of Redis: its acquisition. */
interface Place {
  readonly health: RedisHealth;
  /** Re-checks at this time at the latest. */
  lookBefore(at: number): void;
  /** Re-checks now. */
  lookAgain(): void;
}
