import { AsyncLocalStorage } from "node:async_hooks";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { CallSite } from "./call-site.ts";
import type { Detector } from "./deadlocks/detector.ts";
import type { Holding } from "./holding.ts";
import type { Scope, Told } from "./scope.ts";

/**
 * The scopes of one client. `AsyncLocalStorage` costs every promise a little, so none is created
 * before the first scope.
 */
export class Scopes {
  /** Finds deadlocks of callers that wait in scopes. Null: the option is off. */
  readonly detector: Detector | null;
  #storage: AsyncLocalStorage<Scope | null> | null = null;
  #isClosed = false;
  /** Was there ever a scope? Until then a call need not search for one. */
  isUsed = false;
  /**
   * Has anything of this client `reentrant: false`? Until then no call waits for its own scope, and
   * no call sites are noted.
   */
  notesCallSites = false;

  constructor(detector: Detector | null = null) {
    this.detector = detector;
  }

  /** The line of the application that called the method `below`. Null: no check needs it. */
  callSiteOf(isReentrant: boolean, below: (...args: never[]) => unknown): CallSite | null {
    if (!isReentrant) this.notesCallSites = true;
    return this.notesCallSites ? new CallSite(below) : null;
  }

  /** The innermost scope that has not ended; null outside of any. */
  current(): Scope | null {
    return this.#storage?.getStore()?.living ?? null;
  }

  /**
   * Does the current scope, or one around it, hold a fitting lock, whether or not calls may enter
   * it?
   */
  holds(key: string, fits: (shared: SharedLease) => boolean): boolean {
    for (let scope = this.current(); scope; scope = scope.parent)
      if (!scope.hasEnded && scope.has(key, fits)) return true;
    return false;
  }

  /**
   * The holding that calls may enter, of the current scope or the nearest one around it that has
   * the lock.
   */
  find(key: string): Holding | null {
    for (let scope = this.current(); scope; scope = scope.parent) {
      const holding = scope.hasEnded ? null : scope.find(key);
      if (holding) return holding;
    }
    return null;
  }

  /**
   * Calls `told` when the current scope, or one around it, gets one of these locks. Returns a
   * function that stops it.
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
   * The last lock of the current flow in order, if it comes after this key. Only scopes inside the
   * one that holds the key itself count; all, if none does. Waiting for the key would be out of
   * order. Null: there is no such lock.
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
    if (this.#isClosed) return body();
    this.#storage ??= new AsyncLocalStorage();
    this.isUsed = true;
    return this.#storage.run(scope, body);
  }

  /** Clears only these scopes: the caller's own stores, such as its request, stay. */
  outside<T>(body: () => T): T {
    return this.#storage ? this.#storage.run(null, body) : body();
  }

  /**
   * The client is closed, so no scope of it has a lock. On Node.js 20 and 22, every promise and socket
   * of the process gets a property for each storage that is not disabled, also when its client is gone.
   */
  close(): void {
    this.#isClosed = true;
    this.#storage?.disable();
    this.#storage = null;
  }
}

const isThere = ({ ended }: SharedLease): boolean => !ended;
