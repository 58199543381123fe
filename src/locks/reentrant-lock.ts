import type { Lease } from "../api/lease.ts";
import type { Inspection, Lock, LockBody, Recalled } from "../api/lock.ts";
import type { ForceUnlockOptions, RecallOptions } from "../api/options.ts";
import { RENAMED, refuseRenamedMethods } from "../api/renamed.ts";
import { nounOf } from "../api/wording.ts";
import { itself, type SharedLease } from "../core/lease/shared-lease.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { waitingHere } from "../core/waiter.ts";
import { unavailable } from "../redis/replies.ts";
import type { HolderQueries } from "../runtime/holder-queries.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { clocks } from "../util/clock.ts";
import { inspectAs } from "../util/print.ts";
import { type CallRules, checkForceUnlock, checkRecall } from "./arguments.ts";
import { assertKept, Holding, keyOf, lengthen, type Taken } from "./holding.ts";
import { lockHandle } from "./lease.ts";
import { Loan } from "./loan.ts";
import type { ReentrantMember } from "./members.ts";
import { noUnlock } from "./no-unlock.ts";
import type { Request } from "./request.ts";
import type { Scope } from "./scope.ts";
import { waitBeside } from "./scope-wait.ts";
import type { Scopes } from "./scopes.ts";
import { timedOut } from "./timed-out.ts";
import { besideKey, holdingFor, isGated, isHeldIn, isInside, readInside, toWrite } from "./upgrade.ts";
import { runBody } from "./with-lock.ts";

/**
 * Every lock kind as the caller sees it: arguments, scopes and handles around the lock manager.
 * Many callers make one for each acquisition, so it costs only one object.
 */
export class ReentrantLock implements Lock {
  readonly name: string;
  readonly #kind: LockKind;
  readonly #manager: LockManager;
  readonly #scopes: Scopes;
  readonly #rules: CallRules;

  constructor(kind: LockKind, name: string, manager: LockManager, scopes: Scopes, rules: CallRules) {
    this.name = name;
    this.#kind = kind;
    this.#manager = manager;
    this.#scopes = scopes;
    this.#rules = rules;
  }

  /** The member for a lock object that this manager's client made; null: it is another object. */
  static memberOf(lock: object, manager: LockManager): ReentrantMember | null {
    if (!(#manager in lock && lock.#manager === manager)) return null;
    const { passes, reentrant } = lock.#rules;
    return { kind: lock.#kind, name: lock.name, passes, reentrant };
  }

  // Plain functions instead of async ones: each async one costs every waiter some hundred bytes,
  // and a few turns of the microtask queue between the grant and the caller.
  tryLock(...args: unknown[]): Promise<Lease | null> {
    try {
      const request = args.length === 0 ? this.#rules.once : this.#rules.tryLock([this.name], args);
      return this.#acquire(request, ReentrantLock.prototype.tryLock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  lock(...args: unknown[]): Promise<Lease> {
    try {
      const request = args.length === 0 ? this.#rules.forever : this.#rules.lock([this.name], args);
      const acquired = this.#acquire(request, ReentrantLock.prototype.lock);
      const { wait } = request;
      // A caller that waits without limit never times out.
      if (wait === Number.POSITIVE_INFINITY) return acquired as Promise<Lease>;
      return acquired.then((lease) => lease ?? this.#timedOut(wait));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async withLock<T>(...args: unknown[]): Promise<T> {
    const { body, request: asked, confirm } = this.#rules.withLock<LockBody<T>>([this.name], args);
    const request = this.#located(asked, ReentrantLock.prototype.withLock);
    const until = clocks.mono.now() + request.wait;
    const holding = this.#holding(request);
    const entered = holding ? this.#share(holding, request) : await this.#enter(request);
    if (!entered) return await this.#timedOut(request.wait);
    // Awaited here: an unawaited return value of an async function costs two more turns of the
    // microtask queue.
    if (!(entered instanceof Holding)) return await this.#run(entered, request, body, null, confirm);
    const loan = await new Loan([entered]).begin(async ({ shared, gate }) => {
      if (!isGated(shared)) return null;
      const left = Math.max(0, until - clocks.mono.now());
      return (await gate.enter(left, request.signal)) ? gate : this.#timedOut(request.wait);
    });
    return await this.#run(entered.shared, request, body, loan, confirm);
  }

  isHeldHere(): boolean {
    return isHeldIn(this.#scopes, this.#kind, this.name);
  }

  isLocked(): Promise<boolean> {
    return this.#ask((holderQueries) => holderQueries.isLocked(this.#kind, this.name), INSPECTED);
  }

  inspect(): Promise<Inspection> {
    return this.#ask(async () => {
      const inspected = await this.#kind.inspect(this.name);
      return { ...inspected, here: waitingHere(this.#manager.waitersOf(this.#kind, this.name)) };
    }, INSPECTED);
  }

  async recall(options?: RecallOptions): Promise<Recalled> {
    const wait = checkRecall(this.name, options);
    return this.#ask(
      (holderQueries) => holderQueries.recall(this.#kind, this.name, wait),
      "it could not be recalled",
    );
  }

  async forceUnlock(options?: ForceUnlockOptions): Promise<boolean> {
    const { label, meant } = checkForceUnlock(this.name, options, this.#kind);
    const force = async (holderQueries: HolderQueries): Promise<boolean> =>
      (await holderQueries.recallIdle(this.#kind, this.name, meant)) ||
      (await this.#kind.forceRelease(this.name, label, meant)) > 0;
    return this.#ask(force, "it could not be force-released");
  }

  toJSON(): object {
    return { name: this.name, kind: this.#kind.label };
  }

  unlock(): never {
    throw noUnlock([this.name]);
  }

  // ---- acquiring

  /** A lease on a lock that this scope holds already, or on a new one. */
  #acquire(asked: Request, below: Method): Promise<Lease | null> {
    const scope = this.#scopes.isUsed ? this.#scopes.current() : null;
    if (!scope) {
      if (!asked.reentrant) this.#scopes.notesCallSites = true;
      return this.#manager.enter(this.#kind, this.name, asked, lockHandle);
    }
    const request = this.#located(asked, below);
    const reenter = (holding: Holding): Promise<Lease> => this.#reenter(holding, scope, request);
    const holding = this.#holding(request);
    if (holding) return reenter(holding);
    const take = (shared: SharedLease): Lease => {
      // The scope may have ended during the wait: then the lease belongs to the scope around it, or
      // to the caller alone.
      const keeper = scope.living;
      keeper?.hold(this.#key, shared, taken(request));
      return lockHandle(shared, keeper, true);
    };
    return waitBeside(this.#manager, this.#scopes, this.#kind, this.name, request, take, reenter);
  }

  /** For a body: its own lease, or a share in a lease that its scope gets meanwhile. */
  #enter(request: Request): Promise<SharedLease | Holding | null> {
    if (!this.#scopes.current()) return this.#manager.enter(this.#kind, this.name, request, itself);
    const borrow = async (holding: Holding): Promise<SharedLease | Holding> =>
      this.#share(this.#entered(holding), request);
    return waitBeside(this.#manager, this.#scopes, this.#kind, this.name, request, itself, borrow);
  }

  async #reenter(holding: Holding, scope: Scope, request: Request): Promise<Lease> {
    const { shared: held } = this.#entered(holding);
    assertKept(held);
    const isBeside = isInside(this.#kind, held);
    const shared = isBeside ? readInside(held, request.terms) : held;
    if (isBeside) scope.living?.hold(besideKey(this.#kind.protocol, this.name), shared, taken(request));
    else await shared.enter();
    // RACE: the scope may have ended meanwhile. It would neither take the lease nor report it.
    const lease = lockHandle(shared, scope.living, true);
    await lengthen(shared, request).catch(async (error: unknown) => {
      await lease.leave().catch(() => {});
      throw error;
    });
    return lease;
  }

  /**
   * The lock stays until every borrower has ended, including those that still wait for their turn.
   */
  #share(holding: Holding, request: Request): Holding {
    const { shared } = holding;
    const { terms } = request;
    assertKept(shared);
    if (isInside(this.#kind, shared)) return holding.of(readInside(shared, terms));
    shared.share();
    return holding;
  }

  /** The holding that another call of the scope got meanwhile. @throws LockError LOCK_UPGRADE */
  #entered(holding: Holding): Holding {
    return this.#kind.mode === "write" ? toWrite(holding) : holding;
  }

  /** `loan`: the body's loan; it may have been lost while another borrower was inside. */
  #run<T>(
    shared: SharedLease,
    request: Request,
    body: LockBody<T>,
    loan: Loan | null,
    confirm: boolean,
  ): Promise<T> {
    const { events } = this.#manager;
    const lease = lockHandle(shared, null, false);
    const inside = { scopes: this.#scopes, events, confirm, own: loan ? null : shared, loan };
    const before = loan && (() => lengthen(shared, request));
    return runBody(inside, [[this.#key, shared, taken(request)]], lease, body, before);
  }

  /** The holding that the call may enter now. @throws LockError LOCK_UPGRADE */
  #holding({ reentrant }: Request): Holding | null {
    return holdingFor(this.#scopes, this.#kind, this.name, reentrant);
  }

  /** Adds the line that called the method `below`, if a check needs it. */
  #located(request: Request, below: Method): Request {
    const callSite = this.#scopes.callSiteOf(request.reentrant, below);
    return callSite ? { ...request, callSite } : request;
  }

  // ---- small parts

  get #key(): string {
    return keyOf(this.#kind.protocol, this.name);
  }

  #timedOut(wait: number): Promise<never> {
    const heldBy = isHeldIn(this.#scopes, this.#kind, this.name) && "this scope";
    return timedOut(this.#manager, this.#kind, this.name, wait, heldBy ? { heldBy } : {});
  }

  async #ask<T>(command: (holderQueries: HolderQueries) => Promise<T>, failure: string): Promise<T> {
    try {
      return await command(this.#manager.holderQueries);
    } catch (error) {
      throw unavailable(this.name, failure, error, nounOf(this.#kind));
    }
  }
}

const INSPECTED = "it could not be inspected";

type Method = (...args: never[]) => unknown;

const PLAIN: Taken = { isOrdered: false, isReentrant: true, callSite: null };
const taken = ({ reentrant, callSite }: Request): Taken =>
  callSite ? { isOrdered: false, isReentrant: reentrant, callSite } : PLAIN;

inspectAs(ReentrantLock, "Lock");
refuseRenamedMethods(ReentrantLock, RENAMED.lock);
