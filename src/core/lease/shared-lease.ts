import { LockLostError, LockUnavailableError, released } from "../../api/errors.ts";
import type { Caller, EventKind, Events, LockEvent } from "../../api/events.ts";
import { tell, thrownAt } from "../../api/stacks.ts";
import { type LossReason, nounOf } from "../../api/wording.ts";
import { FIRST_REPLY, LEASE_MIN } from "../../defaults.ts";
import type { HolderFlag, RenewAnswer } from "../../redis/replies.ts";
import { clocks, type Instant, now } from "../../util/clock.ts";
import type { Linked } from "../../util/linked-list.ts";
import type { Timers } from "../../util/timers.ts";
import type { Hold } from "./hold.ts";
import { type Renewer, renewAll } from "./renewer.ts";
import type { Terms } from "./terms.ts";
import { whyExpired } from "./why-expired.ts";

/**
 * One caller's time with the lock, shared by all calls that re-entered or borrowed it in the caller's scope.
 *
 * | state | true | leaves it by |
 * |---|---|---|
 * | held | the deadline is ahead, users > 0 | the last `leave()` → ended · `lose()` → lost |
 * | ended | another client may have it | `settle()` → settled |
 * | settled | its release was answered, or needed no answer | – |
 * | lost | `loss` says why, the signal is aborted | – |
 */
export class SharedLease implements Caller, Departure, Linked {
  list: object | null = null;
  next: this | null = null;
  previous: this | null = null;
  readonly call: number;
  readonly kind: EventKind;
  readonly hold: Hold;
  firstToken: number | undefined = undefined;
  readonly owner: LeaseOwner;
  terms: Terms;
  /** When it began, on the monotonic clock and on the wall clock. */
  since = 0;
  /** Null: only its hold ends it. */
  #sinceWall: number | null = null;
  loss: LockLostError | null = null;
  /**
   * Its last user did not leave: the end of a scope took its lease, and reported that as a loss.
   */
  isTaken = false;
  /**
   * At its end Redis must confirm that it was held: a lock is neither handed on locally nor cached
   * then, and permits are asked about while others of their hold stay.
   */
  isConfirmed = false;
  /**
   * When the watchdog renews it, on the monotonic clock. Infinity: never, or while a renewal is
   * under way.
   */
  due = Number.POSITIVE_INFINITY;
  /**
   * Its first handle, until the watchdog watches that handle: from then on nothing here references
   * it, so it can be collected. Only the first one counts: the other users may end earlier.
   * Undefined: there is none yet.
   */
  handle: object | null | undefined;
  /** When an explicit lease is over; null: the watchdog renews it. */
  #end: number | null = null;
  /** The longest lease that it was given, in ms. */
  #longest = 0;
  /** How many local hand-offs came before it. */
  readonly #passes: number;
  #users = 1;
  #entries = 1;
  #state: "held" | "ended" | "settled" | "lost" = "held";
  #controller: AbortController | undefined;
  /** Called when the release of its last user is answered. */
  #settling: (() => void)[] | null = null;

  /** `caller`: the call that has the lock from now on. */
  constructor(
    hold: Hold,
    terms: Terms,
    owner: LeaseOwner,
    caller: Caller,
    mono = clocks.mono.now(),
    wall = clocks.wall.now(),
  ) {
    this.call = caller.call;
    this.kind = caller.kind;
    this.hold = hold;
    this.#passes = hold.passes;
    this.owner = owner;
    this.terms = terms;
    this.begin(terms, mono, wall);
  }

  get name(): string {
    return this.hold.name;
  }

  /** 0: its kind has none, or it is a permit without fencing. */
  get token(): number {
    const { token } = this.hold;
    return token === 0 ? 0 : token + this.#passes;
  }

  /**
   * Starts the caller's own terms; until now it was kept while its holder waited for other locks.
   * The caller must notify the watchdog, and must have raised its TTL in Redis. An explicit lease
   * ends after its own time, though the hold may live longer.
   */
  begin(terms: Terms, mono = clocks.mono.now(), wall = clocks.wall.now()): void {
    this.terms = terms;
    this.since = mono;
    this.#sinceWall = terms.watchdog && terms.maxHold === Number.POSITIVE_INFINITY ? null : wall;
    this.#end = terms.watchdog ? null : mono + terms.lease;
    this.#longest = terms.lease;
  }

  // ---- is it held?

  /**
   * Computed on each read: true only before the deadline, even in the first statement after a long
   * pause of the process.
   */
  get held(): boolean {
    return this.#state === "held" && this.left() > 0;
  }

  /** Its last user has left, whether or not it was lost. */
  get ended(): boolean {
    return this.#users === 0;
  }

  /** For a semaphore: how many permits it has. */
  get units(): number | undefined {
    return this.terms.permits?.units;
  }

  /** The lease's name in messages. */
  get noun(): string {
    return nounOf(this.owner.kind);
  }

  /**
   * Judged at each read, as `held` is. RACE: after a pause of the process no timer has run yet, and
   * the signal that was read before is not aborted.
   */
  get signal(): AbortSignal {
    this.expire();
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.loss) this.#controller.abort(this.loss);
    }
    return this.#controller.signal;
  }

  /** ms until the local deadline: the hold's or its own, on either clock. */
  left(mono = clocks.mono.now(), wall = clocks.wall.now()): number {
    const { since, hold } = this;
    const left = hold.left(mono, wall);
    if (this.#sinceWall === null) return left;
    const end = Math.min(this.#end ?? Number.POSITIVE_INFINITY, since + this.terms.maxHold);
    const wallEnd = this.#sinceWall + (end - since);
    return Math.min(left, end - mono, wallEnd - wall);
  }

  /** Loses it if its deadline has passed. Returns whether it is held. */
  expire(mono?: number, wall?: number): boolean {
    if (this.#state === "held" && this.left(mono, wall) <= 0) this.lose("expired");
    return this.#state === "held";
  }

  /**
   * `by`: the label of the caller that force-released it. RACE: Redis's answer may be read after
   * the deadline. Then it says only that the lease ran out, whatever has become of the key.
   */
  lose(how: LossReason, by: string | null = null): void {
    if (this.#state !== "held") return;
    const reason = (how === "gone" || how === "taken") && this.left() <= 0 ? "expired" : how;
    this.#state = "lost";
    this.handle = null;
    const why =
      reason === "expired"
        ? whyExpired(this, this.#end ?? Number.POSITIVE_INFINITY, this.#longest)
        : undefined;
    const loss = new LockLostError(this.name, reason, undefined, why, by, this.noun);
    this.loss = loss;
    // The lock's waiters come first: a listener of the signal may run for long.
    this.owner.context.events.step(() => {
      this.owner.lost(this, loss);
      this.#abort();
    });
  }

  /** Redis's answer to its release: it was lost before. */
  lostAtRelease(error: LockLostError): void {
    this.loss = error;
    this.#abort();
  }

  // ---- its users

  /** One more user of the same lease, without a command. */
  share(): void {
    this.#users++;
  }

  /** One more user, which re-enters the lock. Kinds that count in Redis send a command. */
  async enter(): Promise<void> {
    this.#users++;
    this.#entries++;
    try {
      await this.#recount();
    } catch (error) {
      this.#entries--;
      await this.leave().catch(() => {});
      throw error;
    }
  }

  /**
   * A user leaves; the last one releases the lock. Rejects with LockLostError when it was lost
   * meanwhile. `hasEntered`: this user re-entered, and is counted. `isTaken`: its scope makes it
   * leave.
   */
  leave(hasEntered = false, isTaken = false): Promise<void> {
    // A borrower may stay longer than the last re-entered user: the lock is still held once. After
    // the last user there is nothing left to count.
    const mustCount = hasEntered && --this.#entries > 0 && this.#users > 1 && this.#state === "held";
    if (mustCount && this.owner.kind.recount) {
      // Even if the count fails, this user is gone; and the last one ends the hold whatever its
      // count is.
      if (!isTaken) return this.#recount().finally(() => this.leave());
      // Several users may be taken at once, and the last one is known only if each leaves at once.
      // The next caller would inherit their count, so it gets its own hold.
      this.hold.mayPass = 0;
    }
    this.#users--;
    const mono = clocks.mono.now();
    const wall = clocks.wall.now();
    this.expire(mono, wall);
    if (this.loss) return Promise.reject(thrownAt(this.loss, this.leave));
    if (this.#users > 0 || this.#state !== "held") return Promise.resolve();
    this.#state = "ended";
    this.handle = null;
    this.isTaken = isTaken;
    const { context } = this.owner;
    const isOuter = context.events.begin();
    try {
      return this.owner.vacated(this, mono, wall);
    } finally {
      context.events.end(isOuter);
    }
  }

  /**
   * A user that is about to leave wants Redis to confirm that the lock was held until now. For the
   * last user the release does that; for any other this asks at once.
   *
   * @throws LockLostError, LockUnavailableError.
   */
  async confirm(): Promise<void> {
    this.isConfirmed = true;
    if (this.#users > 1) await this.extend(LEASE_MIN);
  }

  /** Its release was answered, or needed no answer. */
  settle(): void {
    if (this.#state === "ended") this.#state = "settled";
    if (this.#settling) for (const resolve of this.#settling) resolve();
  }

  /**
   * Resolves when its release is settled, however that ended. Does not reuse the promise of the
   * call that released it: a second caller that ignores a failure must not hide it from the first.
   */
  whenSettled(): Promise<void> {
    if (this.#state !== "ended") return Promise.resolve();
    this.#settling ??= [];
    const settling = this.#settling;
    return new Promise((resolve) => settling.push(resolve));
  }

  /**
   * Raises its TTL in Redis to at least `ttl` ms from now, for explicit and watchdog leases alike;
   * never lowers it. `within`: ms that the answer may take.
   *
   * @throws LockLostError, LockUnavailableError; LockError `LOCK_RELEASED` when it ended meanwhile.
   */
  async extend(ttl: number, within = Number.POSITIVE_INFINITY): Promise<void> {
    if (!this.expire() && this.loss) throw thrownAt(this.loss, this.extend);
    const sent = now();
    const timeout = Math.min(Math.max(this.left(), FIRST_REPLY), within);
    const { is } = await this.renew(ttl, timeout).catch((error: unknown) => {
      throw new LockUnavailableError(this.name, "its lease was not extended", error, this.noun);
    });
    if (this.loss) throw tell(thrownAt(this.loss, this.extend));
    // Unlocked meanwhile, and over in Redis too: this caller has lost nothing.
    if (is !== "renewed") throw released(this.name, this.noun);
    this.#longest = Math.max(this.#longest, ttl);
    if (this.#end !== null) this.#end = Math.max(this.#end, sent.mono + ttl);
  }

  /** Redis raises the TTL of its hold to at least `ttl` ms from now, and its owner learns the answer. */
  async renew(ttl: number, timeout: number, flag: HolderFlag | null = null): Promise<RenewAnswer> {
    const { hold, owner } = this;
    const { sent, answers } = await renewAll(owner.kind, [{ hold, ttl, flag }], timeout);
    const [answer = GONE] = answers;
    // A lease whose deadline has passed is not revived, as in Watchdog.
    this.expire();
    owner.renewed(this, sent, answer);
    return answer;
  }

  async #recount(): Promise<void> {
    const { recount } = this.owner.kind;
    if (!recount) return;
    const answer = await recount(this.hold, this.#entries).catch((error: unknown) => {
      // The next caller would inherit the count of others, so it gets its own hold.
      this.hold.mayPass = 0;
      throw new LockUnavailableError(this.name, "its hold count was not changed", error, this.noun);
    });
    if (answer !== "renewed") this.lose(answer);
    if (this.loss) throw thrownAt(this.loss, this.#recount);
  }

  #abort(): void {
    if (this.#controller) this.owner.context.events.abort(this.#controller, this.loss);
  }
}

/** What a lease needs of its owner. */
export interface LeaseOwner {
  /**
   * Its last user has left, just now by both clocks: hand the lock on. Rejects with LockLostError or
   * LockUnavailableError.
   */
  vacated(lease: SharedLease, mono: number, wall: number): Promise<void>;
  /** It was lost: no caller here holds the lock any more. */
  lost(lease: SharedLease, error: LockLostError): void;
  /**
   * A renewal of its hold was answered, which was sent while the caller `by` was inside. That counts
   * for the caller that has the hold by now.
   */
  renewed(by: SharedLease, sent: Instant, answer: RenewAnswer): void;
  /** How its lock kind talks to Redis about a hold. */
  readonly kind: Renewer & {
    readonly protocol: string;
    /** Tells Redis how often the lock was entered. Left out: Redis does not count. */
    readonly recount?: (hold: Hold, count: number) => Promise<RenewAnswer["is"]>;
    readonly mode?: "read" | "write";
    /** Left out: no waiter notifies the holder. */
    answer?(name: string, nonce: string, is: "busy" | "idle"): void;
    /** How inspections name a hold, with its random bits. Left out: by its id. */
    shownAs?(hold: Hold): string;
  };
  /** For readers inside a writer's lease: that lease, while it lasts. Left out: there is none. */
  readonly writer?: SharedLease | null;
  /** For a writer: one more lease, of a reader inside its own, which may outlive it. */
  readInside?(writer: SharedLease, terms: Terms): SharedLease;
  readonly context: {
    readonly events: Events;
    readonly watchdog: { readonly timers: Timers };
    readonly wanted: { signalOf(lease: SharedLease): AbortSignal };
  };
}

/** A user that leaves a hold: a lease, or, after that has left, a record of it. */
export interface Departure extends LockEvent {
  readonly token: number;
  /**
   * The first token for which Redis had not confirmed, before the end, that the lock was ours.
   * Undefined: this one.
   */
  firstToken: number | undefined;
  readonly hold: Hold;
  /** Its release was answered, or needed no answer. */
  settle(): void;
  /** Redis answered to its release that it was lost before. */
  lostAtRelease(error: LockLostError): void;
}

/** A record of a caller that has left; no caller waits for the answer about its hold. */
export function departed(
  { name, kind, call, units, token, hold }: SharedLease,
  firstToken?: number | undefined,
): Departure {
  return { name, kind, call, units, token, firstToken, hold, settle() {}, lostAtRelease() {} };
}

const GONE: RenewAnswer = { is: "gone", ttl: 0 };

/** For a caller that takes a lease as it is. */
export const itself = (shared: SharedLease): SharedLease => shared;
