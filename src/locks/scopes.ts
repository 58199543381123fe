import { AsyncLocalStorage } from "node:async_hooks";
import type { SharedLease } from "../engine/lease/shared-lease.ts";
import type { Detector } from "./deadlocks/detector.ts";
import type { Holding } from "./holding.ts";
import { Place } from "./place.ts";
import type { Scope, Told } from "./scope.ts";

/**
 * The scopes of one client. `AsyncLocalStorage` costs every promise a little, so none is made
 * before the first scope.
 */
export class Scopes {
  /** Looks for circles of callers that wait in scopes. Null: nobody does. */
  readonly detector: Detector | null;
  #storage: AsyncLocalStorage<Scope | null> | null = null;
  /** Was there ever a scope? Until then a call need not look for one. */
  isUsed = false;
  /**
   * Has anything of this client `reentrant: false`? Until then no call waits for its own scope, and
   * no places are noted.
   */
  notesPlaces = false;

  constructor(detector: Detector | null = null) {
    this.detector = detector;
  }

  /** The line of the application that has called the method `below`. Null: nobody needs it. */
  placeOf(isReentrant: boolean, below: (...args: never[]) => unknown): Place | null {
    if (!isReentrant) this.notesPlaces = true;
    return this.notesPlaces ? new Place(below) : null;
  }

  /** The innermost scope that has not ended; null outside of any. */
  current(): Scope | null {
    return this.#storage?.getStore()?.living ?? null;
  }

  /**
   * Does the current scope, or one around it, hold a lock, whether or not calls may enter that, in
   * a way that fits?
   */
  holds(key: string, fits: (shared: SharedLease) => boolean): boolean {
    for (let scope = this.current(); scope; scope = scope.parent)
      if (!scope.hasEnded && scope.has(key, fits)) return true;
    return false;
  }

  /** What calls may enter of the current scope, or of the next one around it that knows the lock. */
  find(key: string): Holding | null {
    for (let scope = this.current(); scope; scope = scope.parent) {
      const holding = scope.hasEnded ? null : scope.find(key);
      if (holding) return holding;
    }
    return null;
  }

  /**
   * Calls `told` when the current scope, or one around it, gets one of these locks. Returns how to
   * stop that.
   */
  want(keys: readonly string[], told: Told): () => void {
    const innermost = this.current();
    for (let scope = innermost; scope; scope = scope.parent) for (const key of keys) scope.want(key, told);
    return () => {
      for (let scope = innermost; scope; scope = scope.parent)
        for (const key of keys) scope.unwant(key, told);
    };
  }

  /**
   * What the current flow holds in order and comes behind this key: by the scopes inside of the one
   * that holds the key itself, all of them when none does. Waiting for the key would be out of
   * order. Null: nothing.
   */
  behind(key: string): Holding | null {
    for (let scope = this.current(); scope; scope = scope.parent) {
      if (scope.hasEnded) continue;
      if (scope.has(key, isThere)) return null;
      const { last } = scope;
      if (last && last.key > key) return last;
    }
    return null;
  }

  run<T>(scope: Scope, body: () => T): T {
    this.#storage ??= new AsyncLocalStorage();
    this.isUsed = true;
    return this.#storage.run(scope, body);
  }

  /**
   * Only these scopes are left: the caller's own stores, such as its request, are none of ours to
   * take away.
   */
  outside<T>(body: () => T): T {
    return this.#storage ? this.#storage.run(null, body) : body();
  }
}

const isThere = ({ ended }: SharedLease): boolean => !ended;
