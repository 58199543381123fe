import { RECHECKS } from "../defaults.ts";
import { clocks } from "../util/clock.ts";

/**
 * The queued holds of one client at one lock, by `lock` and by `fairLock`, in the order of the
 * queue. Only the first one sleeps and looks again, and its re-check keeps the entries of all.
 * Protects Redis from n re-checks for n holds, and the entries from ending between the looks of one
 * and of the next. Grants come in order, so the first is also the one whose message can be missing.
 *
 * RACE: two that look by themselves keep the same entries, each for as long as its own place wants.
 * The last look of the near one shortens what the far one has written; the near one gets the lock,
 * and the far one sleeps past the end of its entry.
 */
export class RecheckGroup {
  readonly #places = new Set<Place>();

  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  isFirst(place: Place): boolean {
    const [first] = this.#places;
    return first === undefined || first === place;
  }

  /**
   * A new entry has the shortest time to live: the first hold must look before that is over,
   * however far it stands.
   */
  add(place: Place): void {
    const [first] = this.#places;
    this.#places.add(place);
    first?.lookBefore(clocks.mono.now() + RECHECKS[1].period);
  }

  /**
   * When the first goes, the next one looks when the first would have: there is a re-check in every
   * period.
   */
  remove(place: Place, dueAt: number): void {
    const wasFirst = this.isFirst(place);
    if (!this.#places.delete(place) || !wasFirst) return;
    const [next] = this.#places;
    if (!next) return;
    const now = clocks.mono.now();
    next.lookBefore(Math.min(dueAt, now + RECHECKS[0].period));
    // RACE: in a crowd whose turns are as short as a look, every first one is granted before its
    // look is executed, which keeps no entries then, and all of them end. Sent before the caller
    // that got the lock can give it back, a look is executed in time.
    if (dueAt <= now) queueMicrotask(() => next.lookAgain());
  }
}

/** A hold in a queue of Redis: its acquisition. */
interface Place {
  /** Looks again at this time at the latest. */
  lookBefore(at: number): void;
  /** Looks again now. */
  lookAgain(): void;
}
