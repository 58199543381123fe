import { acquiring, holding } from "../api/channels.ts";
import { ClientClosedError, LockLostError, LockUnavailableError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { isOurs, thrownAt } from "../api/stacks.ts";
import { fits } from "../core/fits.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { Terms } from "../core/lease/terms.ts";
import { outran } from "../core/lease-too-short.ts";
import { type BatchedTry, BLOCKED, type Member } from "../core/lock-kind.ts";
import type { AcquireRequest } from "../core/waiter.ts";
import {
  CLAIM_AFTER,
  FIRST_REPLY,
  MULTI_LOCK_LEASE,
  OUTRUN_ROUNDS,
  OVERLAP_MAX,
  OVERLAP_MIN,
  UNANSWERED,
} from "../defaults.ts";
import { atMost, orAbort, pause } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { between } from "../util/random.ts";
import type { LockManager } from "./lock-manager.ts";
import { follow } from "./telemetry/following.ts";

/**
 * Takes several locks, all or none, by ordinary acquires. `members` are in an order that is the
 * same in every process. `take` gets a lease for each member, in the same statement that obtains
 * the last one. Resolves with the member that was busy, or null: all were taken.
 *
 * Members of one server are tried together: their tries are sent at once, and each does nothing
 * unless the one before it succeeded. The call then waits for the first busy member as any caller
 * does, and holds those before it; the watchdog renews these meanwhile. So a call is in one queue
 * at a time and holds nothing that comes later in the order: two callers never wait for each other.
 * The caller's lease begins when all members are held.
 *
 * Rejects as `LockManager.enter` does. Locks already taken are given back first, as far as Redis
 * answers.
 */
export async function acquireAll(
  manager: LockManager,
  members: readonly Member[],
  request: AcquireRequest,
  take: TakeAll,
): Promise<Busy | null> {
  const by = request.by ?? manager.newCaller("multi");
  if (!request.by && (acquiring.hasSubscribers || holding.hasSubscribers))
    return followAll(manager, members, request, by, take);
  const since = clocks.mono.now();
  const acquisition = new AllAcquisition(manager, members, { ...request, by }, take);
  const gaveUp = (name: string, error: unknown): void =>
    manager.events.tellGiveUp(name, by, since, request.wait, error);
  try {
    const busy = await acquisition.run();
    if (!busy) return null;
    gaveUp(busy.name, null);
    return { busy };
  } catch (error) {
    gaveUp(acquisition.at, error);
    throw isOurs(error, request.signal) ? thrownAt(error, acquireAll) : error;
  }
}

/** The lock that another caller held when the wait was over. */
export interface Busy {
  readonly busy: Member;
}

/** Gets all leases of a call, in the order of its members. */
type TakeAll = (leases: readonly SharedLease[]) => void;

/** The same, while the events of calls have subscribers. */
function followAll(
  manager: LockManager,
  members: readonly Member[],
  request: AcquireRequest,
  by: Caller,
  take: TakeAll,
): Promise<Busy | null> {
  const asked = { name: members[0]?.name ?? "", wait: request.wait, lease: request.terms.lease };
  return follow(manager.events, by, asked, (got) =>
    acquireAll(manager, members, { ...request, by }, (leases) => {
      leases.forEach(got);
      take(leases);
    }),
  );
}

/** A hold id that no hold has. */
const NOBODY = "nobody";

class AllAcquisition {
  /** The locks taken so far, in the order of the members. */
  readonly taken: SharedLease[] = [];
  /** The lock that was requested last. */
  at = "";
  readonly #manager: LockManager;
  readonly #members: readonly Member[];
  readonly #request: AcquireRequest & { by: Caller };
  readonly #takeAll: TakeAll;
  readonly #until: number;
  /** Terms of the locks taken, while the call waits for others. */
  readonly #meanwhile: Terms;
  /** For the lock that was busy when members were tried together: may its holder be idle? */
  #mayBeIdle = false;
  /**
   * How many times in a row the lease ended before it could begin, because its extension took
   * longer.
   */
  #outruns = 0;
  /** Leases obtained since everything was last given back. */
  readonly #brought = new Map<Member, SharedLease>();
  #isDone = false;

  constructor(
    manager: LockManager,
    members: readonly Member[],
    request: AcquireRequest & { by: Caller },
    takeAll: TakeAll,
  ) {
    this.#manager = manager;
    this.#members = members;
    this.#request = request;
    this.#takeAll = takeAll;
    this.#until = clocks.mono.now() + request.wait;
    const lease = Math.max(request.terms.lease, MULTI_LOCK_LEASE);
    this.#meanwhile = { lease, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger: 0 };
  }

  /**
   * Null: all are taken. Otherwise the member that was busy when the wait was over; nothing is held
   * then.
   */
  async run(): Promise<Member | null> {
    let isLast = this.#request.wait > 0;
    try {
      for (;;) {
        const busy = await this.#take();
        if (!busy && (await this.#begin())) return null;
        const got = this.taken.length;
        this.#brought.clear();
        // RACE: while this call waits at an earlier server, a hold left at a later one would block
        // that lock for a whole lease.
        const isPatient = !busy && !this.#manager.isClosed;
        await this.#leave(this.taken.splice(0), isPatient ? Math.max(this.#left, UNANSWERED) : UNANSWERED);
        if (!busy) continue;
        if (isLast || got === 0) return busy;
        // RACE: the holder in the way may be another call that could not get all of its locks
        // either. Both would then report "busy" for locks that neither keeps. So try once more
        // after a random pause.
        isLast = true;
        await pause(between(OVERLAP_MIN, OVERLAP_MAX), this.#request.signal);
        if (await this.#isHeld(busy)) return busy;
      }
    } catch (error) {
      await this.#leave(this.taken.splice(0), UNANSWERED);
      throw error;
    }
  }

  /**
   * Takes the members that are not taken yet. Null: done; otherwise the member that was busy when
   * the wait was over.
   */
  async #take(): Promise<Member | null> {
    for (;;) {
      const [first, ...others] = this.#members.slice(this.taken.length);
      if (!first) return null;
      const group = [first, ...others.slice(0, together(first, others))];
      const { terms } = group.length === this.#members.length ? this.#request : { terms: this.#meanwhile };
      let next: Member | null = first;
      if (group.length > 1) {
        next = await this.#tryTogether(group, terms);
        if (!next) continue;
        // A lock whose holder may be idle is asked for separately. Once the wait is over no other is:
        // with a slow Redis each question for a member would last half a second.
        if (this.#left === 0 && !this.#mayBeIdle) return next;
      }
      this.#keep();
      const taken = await this.#enter(next, {
        terms: group.length > 1 ? this.#meanwhile : terms,
        wait: this.#left,
      });
      if (!taken) return next;
      this.taken.push(taken);
    }
  }

  /**
   * Sends the tries of all of these at once. Returns the first member that another caller holds;
   * null: continue from what is taken.
   */
  async #tryTogether(group: readonly Member[], terms: Terms): Promise<Member | null> {
    const tries: Promise<SharedLease | null>[] = [];
    const batchedTries: BatchedTry[] = [];
    let before: BatchedTry | null = null;
    for (const member of group) {
      const batchedTry: BatchedTry = { dependsOn: before, hold: null, mayBeIdle: false, wait: this.#left };
      tries.push(this.#enter(member, { terms, wait: 0, batchedTry }));
      batchedTries.push(batchedTry);
      // This try joined another caller's, or needed no command: there is no hold for the next try
      // to depend on.
      if (!batchedTry.hold) break;
      before = batchedTry;
    }
    const outcomes = await Promise.allSettled(tries);
    const end = outcomes.findIndex((outcome) => outcome.status === "rejected" || !outcome.value);
    const got = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? (outcome.value ?? []) : []));
    const stop = outcomes[end];
    const count = stop ? end : got.length;
    this.taken.push(...got.slice(0, count));
    // Rarely any: an earlier member was lost, or requested again, meanwhile. RACE: holding a lock
    // that comes after the one waited for would let two callers wait for each other.
    await this.#leave(got.slice(count), Math.max(this.#left, UNANSWERED));
    this.at = group[end]?.name ?? this.at;
    this.#mayBeIdle = batchedTries[end]?.mayBeIdle ?? false;
    if (stop?.status === "rejected" && stop.reason !== BLOCKED) throw stop.reason;
    return stop?.status === "fulfilled" ? (group[end] ?? null) : null;
  }

  #enter(
    member: Member,
    request: Pick<AcquireRequest, "terms" | "wait" | "batchedTry">,
  ): Promise<SharedLease | null> {
    const { kind, name, passes } = member;
    const { signal, by, came } = this.#request;
    this.at = name;
    return this.#manager.enter(kind, name, { ...request, passes, signal, by, came }, (lease) => {
      this.#brings(member, lease);
      return lease;
    });
  }

  /**
   * RACE: the next in line may be a call of the same scope that does not wait; the next statement
   * reports "busy" to it. So if no lease must be extended first, the caller gets all leases in the
   * statement that obtains the last one.
   */
  #brings(member: Member, lease: SharedLease): void {
    this.#brought.set(member, lease);
    if (this.#brought.size < this.#members.length) return;
    const leases = this.#members.flatMap((one) => this.#brought.get(one) ?? []);
    if (leases.every((one) => one.expire()) && this.#short(leases).length === 0) this.#have(leases);
  }

  /** All are held: from now on they are the caller's, each for its full lease. */
  #have(leases: readonly SharedLease[]): void {
    for (const lease of leases) this.#set(lease, this.#request.terms);
    this.#isDone = true;
    this.#takeAll(leases);
  }

  /**
   * Is the lock held? This costs one command. Trying all again costs one for each, and one more for
   * each that is given back. False also when Redis does not answer.
   */
  async #isHeld({ kind, name }: Member): Promise<boolean> {
    const look = kind.renew([{ hold: { name, id: NOBODY, label: "" }, ttl: 1, flag: null }], FIRST_REPLY);
    const answers = await orAbort(
      this.#request.signal,
      look.catch(() => []),
    );
    return answers[0]?.is === "taken";
  }

  /** All members share one wait. When it is over, the remaining ones are tried once. */
  get #left(): number {
    return Math.max(0, this.#until - clocks.mono.now());
  }

  /** The wait for the others may outlast the lease: the watchdog renews what is taken. */
  #keep(): void {
    for (const lease of this.taken) this.#set(lease, this.#meanwhile);
  }

  #set(lease: SharedLease, terms: Terms): void {
    if (lease.terms === terms || !lease.expire()) return;
    lease.begin(terms);
    this.#manager.watchdog.watch(lease);
  }

  /**
   * Leases with less time left than requested, because they were taken long ago; and leases that
   * another client may have deleted or force-released since, which no renewal has reported yet.
   */
  #short(leases: readonly SharedLease[]): SharedLease[] {
    const { terms } = this.#request;
    const at = clocks.mono.now();
    return leases.filter(
      ({ hold, since, terms: own }) =>
        at - since > CLAIM_AFTER ||
        fits(hold, hold.left(), terms, this.#manager.window, own === terms) === "short",
    );
  }

  /** All are taken. False: one was lost meanwhile. */
  async #begin(): Promise<boolean> {
    if (this.#isDone) return true;
    const { terms, signal } = this.#request;
    const at = clocks.mono.now();
    const leases = this.taken;
    const old = this.#short(leases);
    const wereHeld = leases.every((lease) => lease.expire());
    if (old.length > 0) {
      const within = Math.max(this.#until - at, FIRST_REPLY);
      const extending = Promise.allSettled(old.map((lease) => lease.extend(terms.lease, within)));
      // RACE: while Redis hangs, the leases may end with the client. A loss is handled below.
      const ended = AbortSignal.any(leases.map((lease) => lease.signal));
      const answers = orAbort(ended, extending).catch(() => (this.#manager.isClosed ? [] : extending));
      for (const answer of await orAbort(signal, answers))
        if (answer.status === "rejected" && !(answer.reason instanceof LockLostError)) throw answer.reason;
    }
    const lost = leases.find((lease) => !lease.expire());
    const loss = lost?.loss;
    if (!loss) {
      this.#have(leases);
      return true;
    }
    const isOutrun = wereHeld && loss.reason === "expired";
    const isOver = clocks.mono.now() >= this.#until;
    this.#outruns = isOutrun ? this.#outruns + 1 : 0;
    // Can happen occasionally. If it repeats, Redis takes longer to answer than the lease lasts,
    // and more tries would end the same way.
    if (isOutrun && (isOver || this.#outruns >= OUTRUN_ROUNDS))
      throw outran(lost.name, terms.lease, clocks.mono.now() - at, lost.owner.kind);
    if (this.#manager.isClosed) throw new ClientClosedError(lost.name);
    if (isOver)
      throw new LockUnavailableError(lost.name, "it was lost before all were held", loss, lost.noun);
    return false;
  }

  /**
   * Gives these back. Waits at most `within` ms for the answers, so a hanging Redis delays neither
   * the caller nor the call's next step.
   */
  async #leave(taken: readonly SharedLease[], within: number): Promise<void> {
    if (taken.length === 0) return;
    const leaving = taken.map((lease) =>
      lease.leave().catch((error: unknown) => {
        if (!(error instanceof LockLostError)) this.#manager.events.report(error);
      }),
    );
    // A caller that has aborted gets its answer at once.
    await orAbort(this.#request.signal, atMost(Promise.all(leaving), within)).catch(() => {});
  }
}

/** How many of the others, from the first on, can be tried together with this one. */
function together({ kind, name }: Member, others: readonly Member[]): number {
  const place = kind.serverGroup?.(name);
  if (place === undefined) return 0;
  const end = others.findIndex(
    (other) => other.kind.protocol !== kind.protocol || other.kind.serverGroup?.(other.name) !== place,
  );
  return end < 0 ? others.length : end;
}
