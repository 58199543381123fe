import { LockError, LockLostError } from "../api/errors.ts";
import { endOf } from "../api/wording.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { quote } from "../util/quote.ts";
import { Holding, type Taken } from "./holding.ts";
import type { LeaseKeeper, ScopedLease } from "./scope-tie.ts";

/**
 * The holds of one asynchronous flow of control: the body of a `withLock`, or a function given to
 * `locks.scope`. JavaScript has no threads that could identify a caller; the scope does. Scopes
 * nest. An ended scope holds nothing: code that still runs in it counts as another caller.
 *
 * A scope includes everything that it starts, which can be work of other callers. So a lease
 * belongs to the call that took it: the end of a body takes none away. The end of a `locks.scope()`
 * takes the leases that are left in it, and notifies each caller through its own lease.
 */
export class Scope implements LeaseKeeper {
  readonly parent: Scope | null;
  readonly #takes: boolean;
  /** The first of its holdings: most scopes have no other, and need no map. */
  #first: Holding | null = null;
  #others: Map<string, Holding> | null = null;
  #crowded = 8;
  /** Holdings that no call may enter, because of the call that took them. */
  #closed: Holding[] | null = null;
  #mostClosed = 8;
  /** Leases that were taken in it and are not unlocked. */
  #leases: Set<ScopedLease> | null = null;
  /** How many more leases may come before the next search for ended ones. */
  #untilLook = 8;
  /**
   * Calls inside this scope that want a lock which it does not hold, by key. Created by the first
   * of them.
   */
  #wanted: Map<string, Set<Told>> | null = null;
  /** Only written here. */
  hasEnded = false;

  /** `takes`: it is a `locks.scope()`, not a body. */
  constructor(parent: Scope | null, takes = false) {
    this.parent = parent;
    this.#takes = takes;
  }

  /** This scope, or the nearest one around it that has not ended. Null: there is none. */
  get living(): Scope | null {
    let scope: Scope | null = this;
    while (scope?.hasEnded) scope = scope.parent;
    return scope;
  }

  get taker(): Scope | null {
    let scope: Scope | null = this;
    while (scope && (scope.hasEnded || !scope.#takes)) scope = scope.parent;
    return scope;
  }

  hold(key: string, shared: SharedLease, how: Taken): void {
    const holding = new Holding(key, shared, how);
    if (!how.isReentrant) {
      this.#close(holding);
      return;
    }
    if (!this.#first || this.#first.shared.ended || this.#first.key === key) this.#first = holding;
    else {
      this.#others ??= new Map();
      // A scope may live as long as its process: remove ended holdings whenever there are twice as
      // many as after the last search.
      if (this.#others.size >= this.#crowded) {
        for (const [key, { shared }] of this.#others) if (shared.ended) this.#others.delete(key);
        this.#crowded = 2 * this.#others.size + 8;
      }
      this.#others.set(key, holding);
    }
    const wanted = this.#wanted?.get(key);
    if (wanted) for (const told of [...wanted]) told(holding);
  }

  #close(holding: Holding): void {
    this.#closed ??= [];
    if (this.#closed.length >= this.#mostClosed) {
      this.#closed = this.#closed.filter(({ shared }) => !shared.ended);
      this.#mostClosed = 2 * this.#closed.length + 8;
    }
    this.#closed.push(holding);
  }

  /** Calls `told` when this scope gets the lock. */
  want(key: string, told: Told): void {
    this.#wanted ??= new Map();
    const wanted = this.#wanted.get(key);
    if (wanted) wanted.add(told);
    else this.#wanted.set(key, new Set([told]));
  }

  unwant(key: string, told: Told): void {
    const wanted = this.#wanted?.get(key);
    if (wanted?.delete(told) && wanted.size === 0) this.#wanted?.delete(key);
  }

  /**
   * A lock that this scope itself holds and has not released, so that calls may enter it. A lost
   * lock still counts: nested acquisitions must learn of the loss.
   */
  find(key: string): Holding | null {
    const holding = this.#first?.key === key ? this.#first : this.#others?.get(key);
    return holding && !holding.shared.ended ? holding : null;
  }

  /** All holdings; some may be over. */
  get #all(): Holding[] {
    return [
      ...(this.#first ? [this.#first] : []),
      ...(this.#others?.values() ?? []),
      ...(this.#closed ?? []),
    ];
  }

  /** All holdings of this scope and those around it, whether or not calls may enter them. */
  *held(): Iterable<Holding> {
    for (const one of this.hasEnded ? [] : this.#all) if (one.shared.held) yield one;
    if (this.parent) yield* this.parent.held();
  }

  /** Does it hold a fitting lock itself, whether or not calls may enter it? */
  has(key: string, fits: (shared: SharedLease) => boolean): boolean {
    const found = this.find(key)?.shared;
    return (
      (found && fits(found)) || (this.#closed?.some((one) => one.key === key && fits(one.shared)) ?? false)
    );
  }

  /** The last of its holdings in order; null: there is none. */
  get last(): Holding | null {
    const ordered = this.#all.filter(({ shared, how }) => how.isOrdered && shared.held);
    return ordered.reduce<Holding | null>((last, one) => (last && last.key > one.key ? last : one), null);
  }

  /** A lease was taken in it. */
  keep(lease: ScopedLease): void {
    this.#leases ??= new Set();
    // A lost lease that is never unlocked must not stay for the life of a long scope; its loss was
    // reported. Searching once per as many new leases as there are makes the cost per lease
    // constant.
    if (--this.#untilLook < 0) {
      for (const lease of this.#leases) if (!lease.held) this.#leases.delete(lease);
      this.#untilLook = this.#leases.size + 8;
    }
    this.#leases.add(lease);
  }

  /** It is unlocked. */
  drop(lease: ScopedLease): void {
    this.#leases?.delete(lease);
  }

  /**
   * A body has ended. Leases that its callers have not unlocked stay theirs, and no call enters
   * them through this scope.
   */
  leave(): void {
    this.hasEnded = true;
    const leases = this.#leases;
    if (!leases) return;
    this.#leases = null;
    for (const lease of leases) lease.outlive(this.taker);
  }

  /** A `locks.scope()` has ended: takes and reports leases that were not unlocked. */
  async end(report: (error: unknown) => void): Promise<void> {
    this.hasEnded = true;
    const leases = this.#leases;
    this.#leases = null;
    await Promise.all(
      Array.from(leases ?? [], (lease) => {
        // An earlier loss was reported already, and a lost lease cannot stay.
        if (lease.held) report(new LockError("LOCK_LEFT_BEHIND", lease.name, leftBehind(lease)));
        return lease
          .take()
          .catch((error: unknown) => (error instanceof LockLostError ? undefined : report(error)));
      }),
    );
  }
}

/** Called when a scope has got a lock. */
export type Told = (holding: Holding) => void;

const leftBehind = ({ name, noun }: ScopedLease): string =>
  `${noun} ${quote(name)} was still held when the scope in which it was taken ended, and was taken away from its caller: ${endOf(noun)} it in the scope, or use \`await using\`.`;
