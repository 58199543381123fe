import { LockError, LockTimeoutError, LockUnavailableError, quote, quoteAll } from "../errors.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Request } from "../options.ts";
import { OVERTAKEN } from "../overtaken.ts";
import { printAs } from "../util/print.ts";
import type { Busy } from "../waiting/acquire-all.ts";
import type { Member } from "../waiting/lock-kind.ts";
import type { LockManager } from "../waiting/lock-manager.ts";
import type { CallRules } from "./arguments.ts";
import { acquireAllBeside } from "./beside.ts";
import { LeaseHandle } from "./lease.ts";
import { type MultiLease, MultiLeaseHandle } from "./multi-lease.ts";
import type { MultiLock, MultiLockBody } from "./multi-lock.ts";
import type { Holding, Scopes } from "./scope.ts";
import { assertKept, keyOf, lengthen, noUnlock, runBody } from "./with-lock.ts";

/** A member in one call. */
interface Seat extends Member {
  readonly key: string;
  /** What the current scope holds of it. */
  readonly holding: Holding | null;
  /** What this call has of it, or will have: the scope's, or its own. */
  lease: SharedLease | null;
}

/** A multi-lock as the caller sees it: arguments, scopes and handles around the gathering of its members. */
export class OrderedMultiLock implements MultiLock {
  readonly names: readonly string[];
  readonly #members: readonly Member[];
  readonly #manager: LockManager;
  readonly #scopes: Scopes;
  readonly #rules: CallRules;

  /** `members` in their order. */
  constructor(members: readonly Member[], manager: LockManager, scopes: Scopes, rules: CallRules) {
    this.names = members.map(({ name }) => name);
    this.#members = members;
    this.#manager = manager;
    this.#scopes = scopes;
    this.#rules = rules;
  }

  async tryLock(...args: unknown[]): Promise<MultiLease | null> {
    const lease = await this.#acquire(this.#rules.tryLock(this.names, args));
    return "busy" in lease ? null : lease;
  }

  async lock(...args: unknown[]): Promise<MultiLease> {
    const request = this.#rules.lock(this.names, args);
    const lease = await this.#acquire(request);
    return "busy" in lease ? this.#timedOut(lease, request) : lease;
  }

  async withLock<T>(...args: unknown[]): Promise<T> {
    const { body, request } = this.#rules.withLock<MultiLockBody<T>>(this.names, args);
    return this.#within(body, request);
  }

  async #within<T>(body: MultiLockBody<T>, request: Request): Promise<T> {
    const until = performance.now() + request.wait;
    const seats = this.#seats(request);
    const borrowed = held(seats);
    const entered: (() => void)[] = [];
    for (const { shared } of borrowed) shared.share();
    try {
      for (const holding of borrowed) {
        if (!(await this.#borrow(holding, rest(until), request.signal)))
          this.#timedOut({ busy: holding.shared.name }, request, "this scope");
        entered.push(() => holding.gate.leave());
      }
      const busy = await this.#acquireMissing(seats, { ...request, wait: rest(until) });
      if (busy) this.#timedOut(busy, request);
    } catch (error) {
      await Promise.allSettled(borrowed.map(({ shared }) => shared.leave()));
      for (const leave of entered) leave();
      if (error !== OVERTAKEN) throw error;
      return this.#within(body, { ...request, wait: rest(until) });
    }
    const { events } = this.#manager;
    const taken = seats.flatMap(({ key, lease }) => (lease ? [[key, lease] as const] : []));
    const handles = taken.map(([, lease]) => new LeaseHandle(lease, null, false));
    const lease = new MultiLeaseHandle(handles, events);
    const again = () => Promise.all(borrowed.map(({ shared }) => lengthen(shared, request)));
    try {
      return await runBody({ scopes: this.#scopes, events, isOrdered: true }, taken, lease, body, again);
    } finally {
      for (const leave of entered) leave();
    }
  }

  isHeldHere(): boolean {
    this.#scopes.assertOn(`Cannot tell whether this scope holds ${quoteAll(this.names)}`);
    return this.#members.every(
      ({ kind, name }) => this.#scopes.find(keyOf(kind.protocol, name))?.shared.held ?? false,
    );
  }

  async isLocked(): Promise<boolean> {
    const inspections = this.#members.map(({ kind, name }) =>
      kind.inspect(name).catch((error: unknown) => {
        throw new LockUnavailableError(name, "it could not be inspected", error);
      }),
    );
    return (await Promise.all(inspections)).some(({ holder }) => holder !== null);
  }

  toJSON(): object {
    return { names: this.names };
  }

  unlock(): never {
    throw noUnlock(this.names);
  }

  // ---- acquiring

  async #acquire(request: Request): Promise<MultiLease | Busy> {
    const until = performance.now() + request.wait;
    const scope = this.#scopes.current();
    const seats = this.#seats(request);
    const again = held(seats).map(({ shared }) => shared);
    if (again.length > 0) await enterAll(again);
    let busy: Busy | null;
    try {
      busy = await this.#acquireMissing(seats, request, (key, lease) => {
        // The scope may have ended while this waited: then they are nobody's but the caller's.
        if (!scope?.hasEnded) scope?.hold(key, lease, true);
      });
    } catch (error) {
      await exitAll(again);
      if (error !== OVERTAKEN) throw error;
      return this.#acquire({ ...request, wait: rest(until) });
    }
    if (busy) {
      await exitAll(again);
      return busy;
    }
    const { events } = this.#manager;
    const keeper = scope?.hasEnded ? null : scope;
    const handles = seats.flatMap(({ lease }) => (lease ? new LeaseHandle(lease, keeper ?? null, true) : []));
    const lease = new MultiLeaseHandle(handles, events);
    await Promise.all(again.map((shared) => lengthen(shared, request))).catch(async (error: unknown) => {
      await lease.unlock().catch(() => {});
      throw error;
    });
    return lease;
  }

  /** Takes what the scope does not hold, with a word to `took` for each. Resolves with what was busy; rejects also with OVERTAKEN. */
  async #acquireMissing(
    seats: readonly Seat[],
    request: Request,
    took?: (key: string, lease: SharedLease) => void,
  ): Promise<Busy | null> {
    const missing = seats.filter(({ holding }) => !holding);
    if (missing.length === 0) return null;
    return acquireAllBeside(this.#manager, this.#scopes, missing, request, (taken) => {
      for (const { member, lease } of taken) {
        member.lease = lease;
        took?.(member.key, lease);
      }
    });
  }

  /** @throws LockLostError, LockError LOCK_ORDER. */
  #seats({ wait }: Request): readonly Seat[] {
    const seats = this.#members.map((member) => {
      const key = keyOf(member.kind.protocol, member.name);
      const holding = this.#scopes.find(key);
      return { ...member, key, holding, lease: holding?.shared ?? null };
    });
    for (const { shared } of held(seats)) assertKept(shared);
    const missing = seats.find(({ holding }) => !holding);
    if (!missing || wait === 0) return seats;
    // RACE: the holder of the earlier one may wait for the later one, which this scope holds: each would wait for the
    // other, for ever. Also a lock that is none of these, when a multi-lock around this one has taken it.
    const last = held(seats).findLast(({ key }) => key > missing.key) ?? this.#scopes.behind(missing.key);
    if (last) throw outOfOrder(missing.name, last.shared.name);
    return seats;
  }

  /** False: the time is over, and somebody else in the scope that holds it has borrowed it. */
  async #borrow(
    { key, gate, shared }: Holding,
    wait: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (await gate.enter(0, signal)) return true;
    if (wait === 0) return false;
    // The same between the borrowers of one scope.
    const last = this.#scopes.behind(key);
    if (last) throw outOfOrder(shared.name, last.shared.name);
    return gate.enter(wait, signal);
  }

  // ---- small parts

  #timedOut({ busy }: Busy, { wait }: Request, lent?: "this scope"): never {
    const member = this.#members.find(({ name }) => name === busy);
    const heldBy = lent ?? (member ? this.#manager.holderOf(member.kind, busy) : undefined);
    throw new LockTimeoutError(busy, wait, this.names.length, heldBy);
  }
}

const held = (seats: readonly Seat[]): Holding[] => seats.flatMap(({ holding }) => holding ?? []);

/**
 * Enters all of these once more, or none. RACE: all in the statement of the call. Behind an answer a later one may have been
 * unlocked, and would be entered in vain.
 */
async function enterAll(leases: readonly SharedLease[]): Promise<void> {
  const entered: SharedLease[] = [];
  const outcomes = await Promise.allSettled(
    leases.map((lease) => lease.enter().then(() => entered.push(lease))),
  );
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (!failed) return;
  await exitAll(entered);
  throw failed.reason;
}

const exitAll = (leases: readonly SharedLease[]): Promise<unknown> =>
  Promise.allSettled(leases.map((lease) => lease.leave(true)));

const rest = (until: number): number => Math.max(0, until - performance.now());

const outOfOrder = (missing: string, last: string): LockError =>
  new LockError(
    "LOCK_ORDER",
    missing,
    `Lock ${quote(missing)} cannot be waited for by a multi-lock in a scope that holds ${quote(last)}, which comes behind it in ` +
      "the order of locks: take all of them by one multi-lock, around the scope, or try with wait 0.",
  );

printAs(OrderedMultiLock, "MultiLock");
