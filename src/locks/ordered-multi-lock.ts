import { LockError, LockTimeoutError, LockUnavailableError, quote, quoteAll } from "../errors.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Request } from "../options.ts";
import { OVERTAKEN } from "../overtaken.ts";
import { printAs } from "../util/print.ts";
import type { Busy } from "../waiting/acquire-all.ts";
import type { Member } from "../waiting/lock-kind.ts";
import type { LockManager } from "../waiting/lock-manager.ts";
import { holderOf } from "../waiting/self-wait.ts";
import { bodyRequest, type Checks, lockRequest, tryRequest } from "./arguments.ts";
import { acquireAllBeside } from "./beside.ts";
import { LeaseHandle } from "./lease.ts";
import { type MultiLease, MultiLeaseHandle } from "./multi-lease.ts";
import type { MultiLock, MultiLockBody } from "./multi-lock.ts";
import type { Holding, Scopes } from "./scope.ts";
import { assertKept, handle, keyOf, lengthen, noUnlock, runBody } from "./with-lock.ts";

/** A member, and what the current scope holds of it. */
interface Seat {
  readonly member: Member;
  readonly key: string;
  readonly holding: Holding | null;
}

/** A multi-lock as the caller sees it: arguments, scopes and handles around the gathering of its members. */
export class OrderedMultiLock implements MultiLock {
  readonly names: readonly string[];
  readonly #members: readonly Member[];
  readonly #room: LockManager;
  readonly #scopes: Scopes;
  readonly #checks: Checks;

  /** `members` in their order. */
  constructor(members: readonly Member[], room: LockManager, scopes: Scopes, leaseTime: number) {
    this.names = members.map(({ name }) => name);
    this.#members = members;
    this.#room = room;
    this.#scopes = scopes;
    this.#checks = { names: this.names, leaseTime };
  }

  async tryLock(...args: unknown[]): Promise<MultiLease | null> {
    const lease = await this.#acquire(tryRequest(this.#checks, args));
    return "busy" in lease ? null : lease;
  }

  async lock(...args: unknown[]): Promise<MultiLease> {
    const request = lockRequest(this.#checks, args);
    const lease = await this.#acquire(request);
    return "busy" in lease ? this.#timedOut(lease, request) : lease;
  }

  async withLock<T>(...args: unknown[]): Promise<T> {
    const { body, request } = bodyRequest<MultiLockBody<T>>(this.#checks, args);
    return this.#within(body, request);
  }

  async #within<T>(body: MultiLockBody<T>, request: Request): Promise<T> {
    const until = performance.now() + request.wait;
    const seats = this.#seats(request);
    const borrowed = held(seats);
    const entered: (() => void)[] = [];
    for (const { tenure } of borrowed) tenure.share();
    try {
      let tenures: readonly SharedLease[];
      try {
        for (const holding of borrowed) {
          if (!(await this.#borrow(holding, rest(until), request.signal)))
            this.#timedOut({ busy: holding.tenure.name }, request, "this scope");
          entered.push(() => holding.gate.leave());
        }
        const all = await this.#acquireAll(seats, { ...request, wait: rest(until) });
        if (!all) throw OVERTAKEN;
        tenures = "busy" in all ? this.#timedOut(all, request) : all;
      } catch (error) {
        await Promise.allSettled(borrowed.map(({ tenure }) => tenure.leave()));
        if (error !== OVERTAKEN) throw error;
        for (const leave of entered.splice(0)) leave();
        return await this.#within(body, { ...request, wait: rest(until) });
      }
      const { events } = this.#room;
      const leases = tenures.map((tenure) => new LeaseHandle(tenure, events, () => tenure.leave()));
      const keyed = seats.flatMap(({ key }, i) => {
        const tenure = tenures[i];
        return tenure ? [[key, tenure] as const] : [];
      });
      const again = () => Promise.all(borrowed.map(({ tenure }) => lengthen(tenure, request)));
      const lease = new MultiLeaseHandle(leases, events);
      return await runBody({ scopes: this.#scopes, events, isOrdered: true }, keyed, lease, body, again);
    } finally {
      for (const leave of entered) leave();
    }
  }

  isHeldHere(): boolean {
    this.#scopes.assertOn(`Cannot tell whether this scope holds ${quoteAll(this.names)}`);
    return this.#members.every(
      ({ kind, name }) => this.#scopes.find(keyOf(kind.protocol, name))?.tenure.held ?? false,
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
    const again: SharedLease[] = [];
    let tenures: readonly SharedLease[] | Busy | null;
    try {
      // RACE: all in this statement. Behind an answer a later one may have been unlocked, and would be entered in vain.
      const entering = held(seats).map(({ tenure }) => tenure.enter().then(() => again.push(tenure)));
      if (entering.length > 0) {
        await Promise.allSettled(entering);
        await Promise.all(entering);
      }
      tenures = await this.#acquireAll(seats, request);
    } catch (error) {
      await exit(again);
      throw error;
    }
    if (!tenures || "busy" in tenures) {
      await exit(again);
      return tenures ?? this.#acquire({ ...request, wait: rest(until) });
    }
    // The scope may have ended while this waited: then they are nobody's but the caller's.
    const keeper = scope && !scope.hasEnded ? scope : null;
    const leases = tenures.map((tenure, i) => {
      const seat = seats[i];
      if (seat && !seat.holding) keeper?.hold(seat.key, tenure, true);
      return handle(tenure, keeper, this.#room.events);
    });
    const lease = new MultiLeaseHandle(leases, this.#room.events);
    await Promise.all(again.map((tenure) => lengthen(tenure, request))).catch(async (error: unknown) => {
      await lease.unlock().catch(() => {});
      throw error;
    });
    return lease;
  }

  /** A tenure for each seat: what the scope holds, and what must be taken. Null: the scope holds more of them by now. */
  async #acquireAll(seats: readonly Seat[], request: Request): Promise<readonly SharedLease[] | Busy | null> {
    const missing = seats.filter(({ holding }) => !holding).map(({ member }) => member);
    const taken =
      missing.length > 0 ? await acquireAllBeside(this.#room, this.#scopes, missing, request) : [];
    if (!taken || "busy" in taken) return taken;
    const next = taken.values();
    return seats.flatMap(({ holding }) => holding?.tenure ?? next.next().value ?? []);
  }

  /** @throws LockLostError, LockError LOCK_ORDER. */
  #seats({ wait }: Request): readonly Seat[] {
    const seats = this.#members.map((member) => {
      const key = keyOf(member.kind.protocol, member.name);
      return { member, key, holding: this.#scopes.find(key) };
    });
    for (const { tenure } of held(seats)) assertKept(tenure);
    const missing = seats.find(({ holding }) => !holding);
    if (!missing || wait === 0) return seats;
    // RACE 11: the holder of the earlier one may wait for the later one, which this scope holds: each would wait for the
    // other, for ever. Also a lock that is none of these, when a multi-lock around this one has taken it.
    const member = held(seats).findLast(({ key }) => key > missing.key);
    const last = member ?? this.#scopes.behind(missing.key);
    if (last) throw outOfOrder(missing.member.name, last.tenure.name);
    return seats;
  }

  /** False: the time is over, and somebody else in the scope that holds it has borrowed it. */
  async #borrow(
    { key, gate, tenure }: Holding,
    wait: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (await gate.enter(0, signal)) return true;
    if (wait === 0) return false;
    // The same between the borrowers of one scope.
    const last = this.#scopes.behind(key);
    if (last) throw outOfOrder(tenure.name, last.tenure.name);
    return gate.enter(wait, signal);
  }

  // ---- small parts

  #timedOut({ busy }: Busy, { wait }: Request, lent?: "this scope"): never {
    const member = this.#members.find(({ name }) => name === busy);
    const heldBy = lent ?? (member ? holderOf(this.#room, member.kind, busy) : undefined);
    throw new LockTimeoutError(busy, wait, this.names.length, heldBy);
  }
}

const held = (seats: readonly Seat[]): Holding[] => seats.flatMap(({ holding }) => holding ?? []);

const exit = (tenures: readonly SharedLease[]): Promise<unknown> =>
  Promise.allSettled(tenures.map((tenure) => tenure.exit()));

const rest = (until: number): number => Math.max(0, until - performance.now());

const outOfOrder = (missing: string, last: string): LockError =>
  new LockError(
    "LOCK_ORDER",
    missing,
    `Lock ${quote(missing)} cannot be waited for by a multi-lock in a scope that holds ${quote(last)}, which comes behind it in ` +
      "the order of locks: take all of them by one multi-lock, around the scope, or try with wait 0.",
  );

printAs(OrderedMultiLock, "MultiLock");
