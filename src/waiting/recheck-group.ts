import { RECHECKS } from "../defaults.ts";
import type { Acquisition } from "./acquisition.ts";
import { RedisHealth } from "./redis-health.ts";

/**
 * The parked places of one client at one fair lock, in the order of the queue. Only the first one sleeps and looks
 * again, and its re-check keeps the places of all: n places cost what one costs. Grants come in order, so the first is
 * also the one whose message can be missing.
 */
export class RecheckGroup {
  /** Only one of them asks, so what is known of Redis is known to all. */
  readonly health = new RedisHealth();
  readonly #places = new Set<Acquisition>();
  #members = 0;

  /** All places of the client, parked or not. */
  get members(): number {
    return this.#members;
  }

  join(): void {
    this.#members++;
  }

  /** Returns how many are left. */
  leave(): number {
    return --this.#members;
  }

  isFirst(search: Acquisition): boolean {
    const [first] = this.#places;
    return first === search;
  }

  /** A new place has the shortest patience: the first one must look before that is over, however far it stands. */
  add(search: Acquisition): void {
    const [first] = this.#places;
    this.#places.add(search);
    first?.lookBefore(performance.now() + RECHECKS[1].period);
  }

  /** When the first goes, the next one looks when the first would have: there is a re-check in every period. */
  remove(search: Acquisition, dueAt: number): void {
    const wasFirst = this.isFirst(search);
    this.#places.delete(search);
    const [next] = this.#places;
    if (wasFirst) next?.lookBefore(Math.min(dueAt, performance.now() + RECHECKS[0].period));
  }
}
