import { isLockLost, type LockLostError, released } from "../api/errors.ts";
import type { Events } from "../api/events.ts";
import type { BaseLease, Lease, UnfencedLease } from "../api/lease.ts";
import { checkExtension } from "../api/options.ts";
import { isTold, tell, telling, thrownAt } from "../api/stacks.ts";
import { unwatchHandle } from "../core/lease/collected-handles.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { inspectAs } from "../util/print.ts";
import { quote } from "../util/quote.ts";
import { type LeaseKeeper, type ScopedLease, ScopeTie } from "./scope-tie.ts";

/** One user's handle on a lease: a re-entered lock has several, with the same token. */
export abstract class LeaseHandle implements BaseLease, ScopedLease {
  readonly name: string;
  readonly #shared: SharedLease;
  /** Null: it belongs to a body, or to a caller outside of every scope. */
  readonly #tie: ScopeTie | null;
  readonly #hasEntered: boolean;
  #hasLeft = false;

  /**
   * `keeper`: the scope in which it is taken. `hasEntered`: its user has entered the lock; false:
   * it borrows it.
   */
  constructor(shared: SharedLease, keeper: LeaseKeeper | null, hasEntered: boolean) {
    this.name = shared.name;
    this.#shared = shared;
    this.#tie = keeper && new ScopeTie(shared, keeper);
    this.#hasEntered = hasEntered;
    if (shared.handle === undefined) shared.handle = this;
    keeper?.keep(this);
  }

  /** The lease of a handle. @internal */
  static sharedOf(lease: LeaseHandle): SharedLease {
    return lease.#shared;
  }

  get signal(): AbortSignal {
    return telling(this.#tie ? this.#tie.signal : this.#shared.signal);
  }

  get wanted(): AbortSignal {
    return this.#shared.owner.context.wanted.signalOf(this.#shared);
  }

  get held(): boolean {
    return !this.#hasLeft && !this.#tie?.taken && this.#shared.held;
  }

  assertHeld(): void {
    if (!this.#hasLeft && !this.#tie?.taken && this.#shared.expire()) return;
    throw tell(thrownAt(this.#loss ?? released(this.name, this.#shared.noun), this.assertHeld));
  }

  get remaining(): number {
    return this.held ? Math.max(0, Math.floor(this.#shared.left())) : 0;
  }

  async extend(ms: number): Promise<void> {
    checkExtension(quote(this.name), ms, this.#shared.owner.kind.longestLease);
    this.assertHeld();
    const extended = this.#shared.extend(ms);
    // RACE: its scope may end meanwhile. The extended hold then belongs to no caller, or to another
    // user.
    await (this.#tie ? extended.finally(() => this.#assertNotTaken()) : extended);
  }

  /**
   * Its user gives it back. Rejects with its loss, unless that was thrown to its user before.
   * `isThrown`: its user gets the rejection. @internal
   */
  leave(isThrown = true): Promise<void> {
    if (this.#hasLeft) return this.#shared.whenSettled();
    this.#hasLeft = true;
    const tie = this.#tie;
    const left = tie?.taken ? Promise.reject(thrownAt(tie.taken, this.leave)) : this.#leaveShared(false);
    const loss = tie?.taken ?? this.#shared.loss;
    const ended = loss && isTold(loss) ? left.catch(() => {}) : left;
    if (loss && isThrown) tell(loss);
    return tie && !tie.taken ? tie.cut(this, ended) : ended;
  }

  /** Was its loss thrown to its user? @internal */
  get isTold(): boolean {
    const loss = this.#loss;
    return loss !== null && isTold(loss);
  }

  /** The loss of its scope's end, or of the hold; null: it has none yet. */
  get #loss(): LockLostError | null {
    return this.#tie?.taken ?? this.#shared.loss;
  }

  /** The scope in which it was taken has ended. @internal */
  async take(): Promise<void> {
    if (!this.#hasLeft) await this.#tie?.take(this, (isTaken) => this.#leaveShared(isTaken));
  }

  /** The body in which it was taken has ended. @internal */
  outlive(taker: LeaseKeeper | null): void {
    if (this.held) this.#tie?.outlive(this, taker, this.#shared.handle === this);
  }

  #leaveShared(isTaken: boolean): Promise<void> {
    const shared = this.#shared;
    // The lock may stay with other users. Stop watching a handle that its user has given back: when
    // it was collected, it would be reported as a lock that cannot be unlocked.
    if (shared.handle === this) shared.handle = null;
    else unwatchHandle(this);
    return shared.leave(this.#hasEntered, isTaken);
  }

  #assertNotTaken(): void {
    if (this.#tie?.taken) throw tell(thrownAt(this.#tie.taken, this.extend));
  }

  /** The lease's name in messages. */
  get noun(): string {
    return this.#shared.noun;
  }

  /** Its printed form. Reads no signal, so none is made. */
  toJSON(): object {
    const { name, held, remaining } = this;
    return { name, held, remaining };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave().catch((error: unknown) => endBlock(error, this.#shared.owner.context.events));
  }

  [Symbol.dispose](): void {
    this.leave(false).catch((error: unknown) => this.#shared.owner.context.events.report(error));
  }
}

/**
 * The release at the end of a block failed. A loss is thrown. A release that Redis did not confirm
 * is tried again until the lease ends: the block ran under the lock, so its outcome stands.
 */
export function endBlock(failure: unknown, events: Events): void {
  if (isLockLost(failure)) throw failure;
  for (const error of failure instanceof AggregateError ? failure.errors : [failure]) events.report(error);
}

/** A handle on a lock. */
class LockHandle extends LeaseHandle implements UnfencedLease {
  unlock(): Promise<void> {
    return this.leave();
  }
}

/** A handle on a lock that has fencing tokens. */
class FencedHandle extends LockHandle implements Lease {
  get token(): number {
    return LeaseHandle.sharedOf(this).token;
  }

  override toJSON(): object {
    const { name, token, held, remaining } = this;
    return { name, token, held, remaining };
  }
}

/**
 * A handle on a lock, with a token if its kind has them, as the types of locks say. `keeper`,
 * `hasEntered`: as for `LeaseHandle`; left out: for a caller outside of any scope.
 */
export const lockHandle = (
  shared: SharedLease,
  keeper: LeaseKeeper | null = null,
  hasEntered = true,
): LockHandle & Lease =>
  new (shared.token > 0 ? FencedHandle : LockHandle)(shared, keeper, hasEntered) as FencedHandle;

/** Is it a handle on a lock that has fencing tokens? */
export const isFenced = (lease: LeaseHandle): lease is FencedHandle => lease instanceof FencedHandle;

inspectAs(LockHandle, "Lease");
