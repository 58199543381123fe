import { RECHECKS } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { queueMicrotask } from "../util/real-timers.ts";

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
  readonly #places: Place[] = [];

  isFirst(place: Place): boolean {
    return this.#places.length === 0 || this.#places[0] === place;
  }

  /**
   * A new entry has the shortest time to live: the first hold must re-check before that is over,
   * however far back the entry is.
   */
  add(place: Place): void {
    const [first] = this.#places;
    this.#places.push(place);
    first?.lookBefore(clocks.mono.now() + RECHECKS[1].period);
  }

  /**
   * When the first goes, the next one re-checks when the first would have: so every period has a
   * re-check.
   */
  remove(place: Place, dueAt: number): void {
    // Nearly always the first, because grants come in order.
    const index = this.#places.indexOf(place);
    if (index > 0) this.#places.splice(index, 1);
    if (index !== 0) return;
    this.#places.shift();
    const [next] = this.#places;
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

/** The place of a hold in a queue of Redis. */
interface Place {
  /** Re-checks at this time at the latest. */
  lookBefore(at: number): void;
  /** Re-checks now. */
  lookAgain(): void;
}
