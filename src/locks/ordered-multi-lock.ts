import { LockError, LockTimeoutError } from "../api/errors.ts";
import { OVERTAKEN } from "../api/give-up.ts";
import type { MultiLease, MultiLock, MultiLockBody } from "../api/multi-lock.ts";
import { nounOf } from "../api/wording.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { unavailable } from "../redis/replies.ts";
import type { Busy } from "../runtime/acquire-all.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { clocks } from "../util/clock.ts";
import type { LocalSemaphore } from "../util/local-semaphore.ts";
import { inspectAs } from "../util/print.ts";
import { quote } from "../util/quote.ts";
import type { CallRules } from "./arguments.ts";
import type { Holding, Taken } from "./holding.ts";
import { assertKept, keyOf, lengthen } from "./holding.ts";
import { lockHandle } from "./lease.ts";
import { Loan } from "./loan.ts";
import type { ReentrantMember } from "./members.ts";
import { MultiLeaseHandle } from "./multi-lease.ts";
import { noUnlock } from "./no-unlock.ts";
import type { Request } from "./request.ts";
import type { Scope } from "./scope.ts";
import { acquireAllBeside } from "./scope-wait.ts";
import type { Scopes } from "./scopes.ts";
import { timedOut } from "./timed-out.ts";
import { holdingFor, isHeldIn, isInTheWayOf } from "./upgrade.ts";
import { type BodyHold, runBody } from "./with-lock.ts";

/** A member in one call, with the call's own `reentrant` if it gave one. */
interface Seat extends ReentrantMember {
  readonly key: string;
  /** The holding of it that the call may enter. */
  readonly holding: Holding | null;
  /** The lease that this call has, or will have: the scope's, or its own. */
  lease: SharedLease | null;
}

/** Holds of the scope that a call has entered. */
interface Entered {
  /** The other members are unavailable: leaves all of these. */
  undo(): Promise<unknown>;
}

/** A multi-lock as the caller sees it: arguments, scopes and handles around the gathering of its members. */
export class OrderedMultiLock implements MultiLock {
  readonly names: readonly string[];
  readonly #members: readonly ReentrantMember[];
  readonly #manager: LockManager;
  readonly #scopes: Scopes;
  readonly #rules: CallRules;

  /** `members`: in their order. */
  constructor(members: readonly ReentrantMember[], manager: LockManager, scopes: Scopes, rules: CallRules) {
    this.names = members.map(({ name }) => name);
    this.#members = members;
    this.#manager = manager;
    this.#scopes = scopes;
    this.#rules = rules;
  }

  async tryLock(...args: unknown[]): Promise<MultiLease | null> {
    const request = this.#rules.tryLock(this.names, args);
    const lease = await this.#acquire(this.#located(request, OrderedMultiLock.prototype.tryLock));
    return "busy" in lease ? null : lease;
  }

  async lock(...args: unknown[]): Promise<MultiLease> {
    const request = this.#rules.lock(this.names, args);
    const lease = await this.#acquire(this.#located(request, OrderedMultiLock.prototype.lock));
    return "busy" in lease ? this.#timedOut(lease.busy, request) : lease;
  }

  async withLock<T>(...args: unknown[]): Promise<T> {
    const { body, request: asked, confirm } = this.#rules.withLock<MultiLockBody<T>>(this.names, args);
    const request = this.#located(asked, OrderedMultiLock.prototype.withLock);
    const until = clocks.mono.now() + request.wait;
    const all = await this.#take(request, (held, mayWait) => {
      for (const { shared } of held) shared.share();
      return new Loan(held).begin((one) => this.#turn(one, request, until, mayWait));
    });
    if ("busy" in all) return await this.#timedOut(all.busy, request);
    const { seats, entered: loan } = all;
    const { events } = this.#manager;
    const taken = seats.flatMap((seat): BodyHold[] =>
      seat.lease ? [[seat.key, seat.lease, taking(seat, request)]] : [],
    );
    const lease = new MultiLeaseHandle(
      taken.map(([, lease]) => lockHandle(lease, null, false)),
      events,
    );
    const again = () => lengthenAll(seats, request);
    const own = seats.find(({ holding }) => !holding)?.lease ?? null;
    const inside = { scopes: this.#scopes, events, confirm, own, loan };
    return await runBody(inside, taken, lease, body, again);
  }

  isHeldHere(): boolean {
    return this.#members.every(({ kind, name }) => isHeldIn(this.#scopes, kind, name));
  }

  async isLocked(): Promise<boolean> {
    // Each as its kind reports it: a lock that is only cached, with no caller inside, is not
    // locked.
    const questions = this.#members.map(({ kind, name }) =>
      this.#manager.holderQueries.isLocked(kind, name).catch((error: unknown) => {
        throw unavailable(name, "it could not be inspected", error, nounOf(kind));
      }),
    );
    return (await Promise.all(questions)).includes(true);
  }

  toJSON(): object {
    return { names: this.names };
  }

  unlock(): never {
    throw noUnlock(this.names);
  }

  // ---- acquiring

  async #acquire(request: Request): Promise<MultiLeaseHandle | Busy> {
    const scope = this.#scopes.current();
    // The scope may have ended during the wait: then the leases belong to the scope around it, or
    // to the caller alone.
    const keeper = (): Scope | null => scope?.living ?? null;
    const all = await this.#take(request, enterAll, (seat, lease) =>
      keeper()?.hold(seat.key, lease, taking(seat, request)),
    );
    if ("busy" in all) return all;
    const { seats } = all;
    const handles = seats.flatMap(({ lease }) => (lease ? lockHandle(lease, keeper(), true) : []));
    const lease = new MultiLeaseHandle(handles, this.#manager.events);
    await lengthenAll(seats, request).catch(async (error: unknown) => {
      await lease.leave().catch(() => {});
      throw error;
    });
    return lease;
  }

  /**
   * Enters the scope's holds, takes the other members, and calls `took` for each new lease.
   * Resolves with the seats held then, or with the busy member. `enter`: with `mayWait` false it
   * rejects with OVERTAKEN instead of waiting for a turn.
   */
  async #take<E extends Entered>(
    request: Request,
    enter: (held: readonly Holding[], mayWait: boolean) => Promise<E>,
    took: (seat: Seat, lease: SharedLease) => void = () => {},
  ): Promise<{ readonly seats: readonly Seat[]; readonly entered: E | null } | Busy> {
    const until = clocks.mono.now() + request.wait;
    let seats = this.#seats(request);
    const missing = seats.filter(({ lease }) => !lease);
    const isInside = missing.length < seats.length;
    // RACE: while a call waits for a hold of its own scope, it must keep nothing else of that
    // scope. Another call may be inside that hold, and wait for a lock that this one keeps: the two
    // would wait for each other forever.
    const own = isInside && request.wait > 0 ? missing.filter(this.#isOwn) : [];
    const inOrder = own.length === 0;
    const wanted = inOrder ? missing : own;
    const take = (leases: readonly SharedLease[]): void => {
      for (const [i, seat] of wanted.entries()) {
        seat.lease = leases[i] ?? null;
        if (inOrder && seat.lease) took(seat, seat.lease);
      }
    };
    let entered: E | null = null;
    try {
      if (inOrder && isInside) entered = await enter(holdings(seats), true);
      const left = { ...request, wait: rest(until) };
      const busy =
        wanted.length > 0 &&
        (await acquireAllBeside(this.#manager, this.#scopes, wanted, left, inOrder && isInside, take));
      if (busy) {
        await entered?.undo();
        return busy;
      }
      if (!inOrder) {
        // The scope's hold is over, and this call has the lock now. RACE: the other members may
        // come before it in the order of locks. So this call enters them without waiting, or gives
        // the lock back and starts again.
        seats = this.#seats({ ...request, wait: 0 }, own);
        if (seats.some(({ lease }) => !lease)) throw OVERTAKEN;
        entered = await enter(holdings(seats), false);
        for (const seat of seats) if (!seat.holding && seat.lease) took(seat, seat.lease);
      }
      return { seats, entered };
    } catch (error) {
      await entered?.undo();
      if (!inOrder) await Promise.allSettled(own.map(({ lease }) => lease?.leave()));
      if (error !== OVERTAKEN) throw error;
      return this.#take({ ...request, wait: rest(until) }, enter, took);
    }
  }

  /**
   * `own`: members that the call has taken already. @throws LockLostError, LockError LOCK_ORDER,
   * LOCK_UPGRADE.
   */
  #seats({ wait, says }: Request, own: readonly Seat[] = []): readonly Seat[] {
    const seats = this.#members.map((member) => {
      const key = keyOf(member.kind.protocol, member.name);
      const reentrant = says ?? member.reentrant;
      const mine = own.find((seat) => seat.key === key);
      // A reader in a scope that writes is one more user of the writer's lease.
      const holding = mine ? null : holdingFor(this.#scopes, member.kind, member.name, reentrant);
      return { ...member, reentrant, key, holding, lease: holding?.shared ?? mine?.lease ?? null };
    });
    for (const { shared } of holdings(seats)) assertKept(shared);
    const missing = seats.find(({ holding }) => !holding);
    if (!missing || wait === 0) return seats;
    // It first waits for its own scope, and keeps nothing meanwhile, so no call waits for it. Then
    // it starts again.
    const hasEntered = seats.some(({ holding }) => holding);
    if (hasEntered ? seats.some((seat) => !seat.holding && this.#isOwn(seat)) : this.#isOwn(missing))
      return seats;
    // RACE: the holder of the earlier lock may wait for the later one, which this scope holds: the
    // two would wait for each other forever. The later one may also belong to a multi-lock around
    // this one.
    const last = holdings(seats).findLast(({ key }) => key > missing.key) ?? this.#scopes.behind(missing.key);
    if (last) throw outOfOrder(missing.name, last.shared.name);
    return seats;
  }

  /** Must the call wait for its own scope at a member that it may not enter? */
  readonly #isOwn = ({ kind, name }: Seat): boolean => isInTheWayOf(this.#scopes, kind, name);

  /**
   * A body's turn in one lock.
   *
   * @throws LockTimeoutError when another body of the scope has borrowed it for all of the time;
   * LockError LOCK_ORDER.
   */
  async #turn(
    { key, gate, shared }: Holding,
    { signal, wait }: Request,
    until: number,
    mayWait: boolean,
  ): Promise<LocalSemaphore> {
    if (await gate.enter(0, signal)) return gate;
    if (!mayWait) throw OVERTAKEN;
    // The same order holds between the borrowers of one scope.
    const last = wait > 0 ? this.#scopes.behind(key) : null;
    if (last) throw outOfOrder(shared.name, last.shared.name);
    if (await gate.enter(rest(until), signal)) return gate;
    throw new LockTimeoutError(shared.name, wait, this.names.length, "this scope", 0, shared.noun);
  }

  // ---- small parts

  /** Adds the line that called the method `below`, if a check needs it. */
  #located(request: Request, below: (...args: never[]) => unknown): Request {
    const isReentrant = request.says ?? this.#members.every(({ reentrant }) => reentrant);
    const callSite = this.#scopes.callSiteOf(isReentrant, below);
    return callSite ? { ...request, callSite } : request;
  }

  #timedOut({ kind, name }: Busy["busy"], { wait }: Request): Promise<never> {
    const own = isHeldIn(this.#scopes, kind, name) ? ({ heldBy: "this scope" } as const) : {};
    return timedOut(this.#manager, kind, name, wait, { ...own, members: this.names.length });
  }
}

const taking = ({ reentrant }: Seat, { callSite = null }: Request): Taken => ({
  isOrdered: true,
  isReentrant: reentrant,
  callSite,
});

const holdings = (seats: readonly Seat[]): Holding[] => seats.flatMap(({ holding }) => holding ?? []);

/**
 * Enters all of these once more, or none. RACE: all in one statement of the call. After an answer,
 * a later one may have been unlocked already, and could not be entered.
 */
async function enterAll(held: readonly Holding[]): Promise<Entered> {
  const outcomes = await Promise.allSettled(held.map(({ shared }) => shared.enter()));
  const entered = held.filter((_, i) => outcomes[i]?.status === "fulfilled");
  const undo = () => Promise.allSettled(entered.map(({ shared }) => shared.leave(true)));
  for (const one of outcomes) {
    if (one.status === "fulfilled") continue;
    await undo();
    throw one.reason;
  }
  return { undo };
}

const lengthenAll = (seats: readonly Seat[], request: Request): Promise<unknown> =>
  Promise.all(holdings(seats).map(({ shared }) => lengthen(shared, request)));

const rest = (until: number): number => Math.max(0, until - clocks.mono.now());

const outOfOrder = (missing: string, last: string): LockError =>
  new LockError(
    "LOCK_ORDER",
    missing,
    `Lock ${quote(missing)} cannot be waited for by a multi-lock in a scope that holds ${quote(last)}, which comes after it in ` +
      "the order of locks: take all of them by one multi-lock, around the scope, or try with wait 0.",
  );

inspectAs(OrderedMultiLock, "MultiLock");
