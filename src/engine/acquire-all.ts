import { acquiring, holding } from "../api/channels.ts";
import { LockLostError, LockUnavailableError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { isOurs, thrownAt } from "../api/stacks.ts";
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
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { outran } from "./lease-too-short.ts";
import { type BatchedTry, BLOCKED, type Member } from "./lock-kind.ts";
import type { LockManager } from "./lock-manager.ts";
import { fits } from "./policies/fits.ts";
import { follow } from "./telemetry/following.ts";
import type { AcquireRequest } from "./waiter.ts";

/**
 * Takes several locks, all or none, by ordinary acquires. `members` come in an order that is the
 * same everywhere. `take` gets a lease for each in the statement that brings the last one. Resolves
 * with what was busy; null: nothing was.
 *
 * Members of one server are tried together: their tries are sent at once, and each does nothing
 * unless the one before it has won. The first one that is busy is then waited for as by any caller,
 * with those before it held; the watchdog keeps these meanwhile. So the call stands in one queue at
 * a time, and holds nothing that comes behind it in the order: no two callers ever wait for each
 * other. The caller's lease begins when all are held.
 *
 * Rejects as `LockManager.enter` does. What was taken in vain is given back first, as far as Redis
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

/** The lock that somebody else held when the time to wait was over. */
export interface Busy {
  readonly busy: Member;
}

/** Gets all leases of a call, in the order of its members. */
type TakeAll = (leases: readonly SharedLease[]) => void;

/** The same, while somebody follows calls. */
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

/** A hold that nobody has. */
const NOBODY = "nobody";

class AllAcquisition {
  /** What is held, in the order of the members. */
  readonly taken: SharedLease[] = [];
  /** The lock that was asked for last. */
  at = "";
  readonly #manager: LockManager;
  readonly #members: readonly Member[];
  readonly #request: AcquireRequest & { by: Caller };
  readonly #takeAll: TakeAll;
  readonly #until: number;
  /** Of what is held while others are waited for. */
  readonly #meanwhile: Terms;
  /** Of the lock that was busy when they were tried together: its holder may have nobody inside. */
  #mayBeIdle = false;
  /** How many times in a row the lease was over before it could begin, because its extension took longer. */
  #outruns = 0;
  /** What was brought since all was given back last. */
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

  /** Null: all are taken. Else the one that was busy when the time was over, and nothing is held. */
  async run(): Promise<Member | null> {
    let isLast = this.#request.wait > 0;
    try {
      for (;;) {
        const busy = await this.#take();
        if (!busy && (await this.#begin())) return null;
        const got = this.taken.length;
        this.#brought.clear();
        // RACE: a hold that stood at a later server while this waits at an earlier one would block
        // its lock for the whole lease.
        await this.#leave(this.taken.splice(0), busy ? UNANSWERED : Math.max(this.#left, UNANSWERED));
        if (!busy) continue;
        if (isLast || got === 0) return busy;
        // RACE: what was in the way may be another one that could not get all of its locks either.
        // Both may have met others so, and all would be told "busy" of locks that nobody has.
        isLast = true;
        await pause(between(OVERLAP_MIN, OVERLAP_MAX), this.#request.signal);
        if (await this.#isHeld(busy)) return busy;
      }
    } catch (error) {
      await this.#leave(this.taken.splice(0), UNANSWERED);
      throw error;
    }
  }

  /** Takes what is not taken yet. Null: done; else what was busy when the time was over. */
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
        // What may be held with nobody inside is asked for by itself.
        if (this.#request.wait === 0 && !this.#mayBeIdle) return next;
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
   * Sends the tries of all of these at once. Returns the first one that somebody else holds; null:
   * go on from what is taken.
   */
  async #tryTogether(group: readonly Member[], terms: Terms): Promise<Member | null> {
    const tries: Promise<SharedLease | null>[] = [];
    const batchedTries: BatchedTry[] = [];
    let before: BatchedTry | null = null;
    for (const member of group) {
      const batchedTry: BatchedTry = { dependsOn: before, hold: null, mayBeIdle: false, wait: this.#left };
      tries.push(this.#enter(member, { terms, wait: 0, batchedTry }));
      batchedTries.push(batchedTry);
      // Its try is another caller's, or needed no command: nothing is known that the next one could name.
      if (!batchedTry.hold) break;
      before = batchedTry;
    }
    const outcomes = await Promise.allSettled(tries);
    const end = outcomes.findIndex((outcome) => outcome.status === "rejected" || !outcome.value);
    const got = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? (outcome.value ?? []) : []));
    const stop = outcomes[end];
    const count = stop ? end : got.length;
    this.taken.push(...got.slice(0, count));
    // Hardly ever any: one before them was lost, or asked for again, meanwhile. RACE: a hold behind
    // the one that is waited for would be what two callers need to wait for each other.
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
   * RACE: the next in line may be a call of the same scope that does not wait, and is told in the
   * next statement that the lock is busy. So the caller has all of them in the statement that
   * brings the last one, where none must be extended before.
   */
  #brings(member: Member, lease: SharedLease): void {
    this.#brought.set(member, lease);
    if (this.#brought.size < this.#members.length) return;
    const leases = this.#members.flatMap((one) => this.#brought.get(one) ?? []);
    if (leases.every((one) => one.expire()) && this.#short(leases).length === 0) this.#have(leases);
  }

  /** All are held: from now on they are the caller's, for all of its lease. */
  #have(leases: readonly SharedLease[]): void {
    for (const lease of leases) this.#set(lease, this.#request.terms);
    this.#isDone = true;
    this.#takeAll(leases);
  }

  /**
   * One command, where another try of all costs one for each, and one more for each that is given
   * back. False also when nobody knows.
   */
  async #isHeld({ kind, name }: Member): Promise<boolean> {
    const look = kind.renew([{ name, id: NOBODY, label: "", ttl: 1, record: null, flag: null }], FIRST_REPLY);
    const answers = await orAbort(
      this.#request.signal,
      look.catch(() => []),
    );
    return answers[0]?.is === "taken";
  }

  /** One time to wait for all. When it is over, what is left is tried once. */
  get #left(): number {
    return Math.max(0, this.#until - clocks.mono.now());
  }

  /** Others are waited for, perhaps for longer than the lease: the watchdog keeps what is taken. */
  #keep(): void {
    for (const lease of this.taken) this.#set(lease, this.#meanwhile);
  }

  #set(lease: SharedLease, terms: Terms): void {
    if (lease.terms === terms || !lease.expire()) return;
    lease.begin(terms);
    this.#manager.watchdog.watch(lease);
  }

  /**
   * The first may have been taken long ago: of these less is left than was asked for, or somebody
   * took them away by force or deleted them, which no renewal has told yet.
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
      // What is lost is seen below.
      for (const extended of await orAbort(signal, extending))
        if (extended.status === "rejected" && !(extended.reason instanceof LockLostError))
          throw extended.reason;
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
    // Now and then that can happen. When it goes on, the lease is shorter than Redis takes, and
    // more tries would end the same.
    if (isOutrun && (isOver || this.#outruns >= OUTRUN_ROUNDS))
      throw outran(lost.name, terms.lease, clocks.mono.now() - at, lost.owner.kind);
    if (isOver)
      throw new LockUnavailableError(lost.name, "it was lost before all were held", loss, lost.noun);
    return false;
  }

  /**
   * Gives these back. Waits so many ms for Redis to say so: a Redis that hangs must not hold up a
   * caller, nor what it does instead.
   */
  async #leave(taken: readonly SharedLease[], within: number): Promise<void> {
    if (taken.length === 0) return;
    const leaving = taken.map((lease) =>
      lease.leave().catch((error: unknown) => {
        if (!(error instanceof LockLostError)) this.#manager.events.report(error);
      }),
    );
    // A caller that has gone gets its answer at once.
    await orAbort(this.#request.signal, atMost(Promise.all(leaving), within)).catch(() => {});
  }
}

/** With how many of the others, from the first on, this one can be tried together. */
function together({ kind, name }: Member, others: readonly Member[]): number {
  const place = kind.serverGroup?.(name);
  if (place === undefined) return 0;
  const end = others.findIndex(
    (other) => other.kind.protocol !== kind.protocol || other.kind.serverGroup?.(other.name) !== place,
  );
  return end < 0 ? others.length : end;
}
