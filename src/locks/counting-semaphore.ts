import type { ForceUnlockOptions } from "../api/options.ts";
import type { PermitBody, PermitLease, Semaphore, SemaphoreInspection } from "../api/semaphore.ts";
import { nounOf } from "../api/wording.ts";
import { itself, type SharedLease } from "../core/lease/shared-lease.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { waitingHere } from "../core/waiter.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import { unavailable } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { inspectAs } from "../util/print.ts";
import { quote } from "../util/quote.ts";
import { type CallRules, checkForceUnlock } from "./arguments.ts";
import { checkPermits, PermitRules } from "./permit-arguments.ts";
import { PermitHandle } from "./permit-handle.ts";
import type { Request } from "./request.ts";
import { waitBeside } from "./scope-wait.ts";
import type { Scopes } from "./scopes.ts";
import { timedOut } from "./timed-out.ts";
import { runBody } from "./with-lock.ts";

/** The kind of a semaphore: a lock kind with more commands. */
export interface PermitKind extends LockKind {
  setPermits(name: string, permits: number): Promise<unknown>;
  look(name: string): Promise<CountedInspection>;
}

/**
 * A semaphore as the caller sees it: arguments and handles around the lock manager. Nothing is
 * re-entered: a scope only gives back unreleased permits that were taken in it.
 */
export class CountingSemaphore implements Semaphore {
  readonly name: string;
  readonly #kind: PermitKind;
  readonly #permits: number | null;
  readonly #manager: LockManager;
  readonly #scopes: Scopes;
  readonly #rules: PermitRules;

  /** `permits`: how many there are by the caller's code; null: as many as are stored. */
  constructor(
    kind: PermitKind,
    name: string,
    permits: number | null,
    manager: LockManager,
    scopes: Scopes,
    rules: CallRules,
  ) {
    this.name = name;
    this.#kind = kind;
    this.#permits = permits;
    this.#manager = manager;
    this.#scopes = scopes;
    this.#rules = new PermitRules(rules, name, permits);
  }

  async tryAcquire(...args: unknown[]): Promise<PermitLease | null> {
    return this.#acquire(this.#rules.tryAcquire(args));
  }

  async acquire(...args: unknown[]): Promise<PermitLease> {
    const request = this.#rules.acquire(args);
    return (await this.#acquire(request)) ?? (await this.#timedOut(request));
  }

  async withPermits<T>(...args: unknown[]): Promise<T> {
    const { body, request, confirm } = this.#rules.withPermits<PermitBody<T>>(args);
    const shared = await this.#wait(request, itself);
    if (!shared) return await this.#timedOut(request);
    const { events } = this.#manager;
    const inside = { scopes: this.#scopes, events, confirm, own: shared, loan: null };
    return runBody(inside, [[KEY, shared, UNSHARED]], new PermitHandle(shared, null), body, null);
  }

  async setPermits(permits: number): Promise<void> {
    const checked = checkPermits(this.name, permits);
    await this.#ask(() => this.#kind.setPermits(this.name, checked), "the number of its permits was not set");
  }

  inspect(): Promise<SemaphoreInspection> {
    return this.#ask(async () => {
      const { at, permits, isSet, used, holders, waiters } = await this.#kind.look(this.name);
      return {
        permits,
        isSet,
        used,
        holders: holders.map(({ party }) => party),
        waiters,
        at,
        here: waitingHere(this.#manager.waitersOf(this.#kind, this.name)),
      };
    }, "it could not be inspected");
  }

  async forceUnlock(options?: ForceUnlockOptions): Promise<number> {
    const { label, meant } = checkForceUnlock(this.name, options, this.#kind);
    return this.#ask(
      () => this.#kind.forceRelease(this.name, label, meant),
      "it could not be force-released",
    );
  }

  toJSON(): object {
    return { name: this.name, kind: this.#kind.label, permits: this.#permits };
  }

  /**
   * In-process semaphores work like this, but here it would give back permits of other callers. The
   * error tells JavaScript callers what to do.
   */
  release(): never {
    throw new TypeError(
      `Cannot release permits of ${quote(this.name)}: a semaphore has no release(); keep the lease that tryAcquire() or acquire() gave, and call lease.release()`,
    );
  }

  #acquire(request: Request): Promise<PermitLease | null> {
    const scope = this.#scopes.isUsed ? this.#scopes.current() : null;
    // The scope may have ended during the wait: then the lease belongs to the scope around it, or
    // to the caller alone.
    const take = (shared: SharedLease): PermitLease => new PermitHandle(shared, scope?.living ?? null);
    return this.#wait(request, take);
  }

  #wait<T>(request: Request, take: (shared: SharedLease) => T): Promise<T | null> {
    return waitBeside(this.#manager, this.#scopes, this.#kind, this.name, request, take);
  }

  #timedOut({ wait, terms }: Request): Promise<never> {
    const units = terms.permits?.units ?? 1;
    return timedOut(this.#manager, this.#kind, this.name, wait, { heldBy: "somebody else", units });
  }

  async #ask<T>(command: () => Promise<T>, failure: string): Promise<T> {
    try {
      return await command();
    } catch (error) {
      throw unavailable(this.name, failure, error, nounOf(this.#kind));
    }
  }
}

/**
 * The key of permits in a body's scope. It is never looked up, because a body does not lend
 * permits.
 */
const KEY = "semaphore";
const UNSHARED = { isOrdered: false, isReentrant: true, callSite: null };

inspectAs(CountingSemaphore, "Semaphore");
