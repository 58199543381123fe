import { LockLostError, LockUnavailableError, released } from "../../api/errors.ts";
import type { Caller, EventKind, Events, LockEvent } from "../../api/events.ts";
import { thrownAt } from "../../api/stacks.ts";
import { type LossReason, nounOf } from "../../api/wording.ts";
import { FIRST_REPLY, LEASE_MIN } from "../../defaults.ts";
import type { RenewAnswer } from "../../redis/replies.ts";
import { clocks, type Instant, now } from "../../util/clock.ts";
import { detached } from "../../util/detached.ts";
import type { Timers } from "../../util/timers.ts";
import { expiryOf } from "./expiry.ts";
import type { Hold } from "./hold.ts";
import type { Renewer } from "./renewer.ts";
import type { Terms } from "./terms.ts";

/**
 * One caller's time with the lock, shared by all calls that re-entered or borrowed it in the caller's scope.
 *
 * | state | true | leaves it by |
 * |---|---|---|
 * | held | the deadline is ahead, users > 0 | the last `leave()` → ended · `lose()` → lost |
 * | ended | another client may have it | – |
 * | lost | `loss` says why, the signal is aborted | – |
 */
export class SharedLease implements Caller, Departure {
  readonly call: number;
  readonly kind: EventKind;
  readonly name: string;
  readonly hold: Hold;
  /** 0: its kind has none. Of permits one that fences nothing. */
  readonly token: number;
  firstToken: number | undefined = undefined;
  readonly owner: LeaseOwner;
  terms: Terms;
  /** When it began, on the monotonic clock and on the wall clock. */
  since = clocks.mono.now();
  #sinceWall = clocks.wall.now();
  loss: LockLostError | null = null;
  /** Its last user did not leave: the end of a scope has taken its lease, and that was told as a loss. */
  isTaken = false;
  /** Redis must say at its end that it was held so far: it is not passed on, nor kept. */
  isConfirmed = false;
  /**
   * Of the watchdog: when to renew it, on the monotonic clock. Infinity: never, or while a renewal
   * is under way.
   */
  due = Number.POSITIVE_INFINITY;
  /**
   * The first handle on it, until the watchdog watches that: from then on it is not held on to, so
   * it can be collected. Only the first one counts: the others are of users that may end before it
   * does. Undefined: there is none yet.
   */
  handle: object | null | undefined;
  #end: number;
  /** The longest lease that it was given, in ms. */
  #longest: number;
  #users = 1;
  #entries = 1;
  #state: "held" | "ended" | "lost" = "held";
  #controller: AbortController | undefined;
  #isSettled = false;
  /** Told when the release of its last user is answered. */
  #settling: (() => void)[] | null = null;

  /** `caller`: the call that acquired it. */
  constructor(hold: Hold, terms: Terms, owner: LeaseOwner, caller: Caller) {
    this.call = caller.call;
    this.kind = caller.kind;
    this.name = hold.name;
    this.hold = hold;
    this.token = hold.token === 0 ? 0 : hold.token + hold.passes;
    this.owner = owner;
    this.terms = terms;
    this.#end = terms.watchdog ? Number.POSITIVE_INFINITY : this.since + terms.lease;
    this.#longest = terms.lease;
  }

  /**
   * From now on it is held under other terms; so far it was kept while its holder waited for other
   * locks. Its watchdog must be told, and Redis must have been. An explicit lease ends after its
   * own time, though the hold may live longer.
   */
  begin(terms: Terms): void {
    this.terms = terms;
    this.since = clocks.mono.now();
    this.#sinceWall = clocks.wall.now();
    this.#end = terms.watchdog ? Number.POSITIVE_INFINITY : this.since + terms.lease;
    this.#longest = terms.lease;
  }

  // ---- is it held?

  /**
   * Computed, not remembered: true only while the deadline is ahead, also in the first statement
   * after a long stop.
   */
  get held(): boolean {
    return this.#state === "held" && this.left() > 0;
  }

  /** Its last user has left, whether or not it was lost. */
  get ended(): boolean {
    return this.#users === 0;
  }

  /** Of a semaphore: how many permits it has. */
  get units(): number | undefined {
    return this.terms.permits?.units;
  }

  /** What messages call it. */
  get noun(): string {
    return nounOf(this.owner.kind);
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      this.expire();
      if (this.loss) this.#controller.abort(this.loss);
    }
    return this.#controller.signal;
  }

  /** ms until the local deadline: of the hold or its own, on either clock. */
  left(mono = clocks.mono.now(), wall = clocks.wall.now()): number {
    const { since, hold } = this;
    const end = Math.min(this.#end, since + this.terms.maxHold);
    const wallEnd = this.#sinceWall + (end - since);
    return Math.min(hold.endMono - mono, hold.endWall - wall, end - mono, wallEnd - wall);
  }

  /** Loses it if its deadline has passed. Returns whether it is held. */
  expire(mono?: number, wall?: number): boolean {
    if (this.#state === "held" && this.left(mono, wall) <= 0) this.lose("expired");
    return this.#state === "held";
  }

  /** `by`: the label of the caller that took it away. */
  lose(reason: LossReason, by: string | null = null): void {
    if (this.#state !== "held") return;
    this.#state = "lost";
    this.handle = null;
    const how = reason === "expired" ? expiryOf(this, this.#end, this.#longest) : undefined;
    this.loss = new LockLostError(this.name, reason, undefined, how, by, this.noun);
    // The lock's waiters come first: a listener of the signal may run for long.
    this.owner.lost(this, this.loss);
    this.#abort();
  }

  /** Redis has answered to its release that it was lost before. */
  lostAtRelease(error: LockLostError): void {
    this.loss = error;
    this.#abort();
  }

  // ---- its users

  /** One more user of the same lease, without a command. */
  share(): void {
    this.#users++;
  }

  /** One more user, which enters the lock again. Kinds that count in Redis send a command. */
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
   * A user leaves; with the last one the lock goes. Rejects with LockLostError when it was lost
   * meanwhile. `hasEntered`: it is one that had entered, and is counted. `isTaken`: its scope makes
   * it leave.
   */
  leave(hasEntered = false, isTaken = false): Promise<void> {
    // A borrower may stay longer than the last one that entered: the lock is still held once.
    // Behind the last user there is nothing left to count.
    const mustCount = hasEntered && --this.#entries > 0 && this.#users > 1 && this.#state === "held";
    if (mustCount && this.owner.kind.recount) {
      // Whatever becomes of the count: this user is gone, and the last one ends the hold whatever
      // its count is.
      if (!isTaken) return this.#recount().finally(() => this.leave());
      // Several may be taken at once, and the last one is known only if each is gone at once. The
      // next caller would hold the lock with their count, so it gets a hold of its own.
      this.hold.mayPass = 0;
    }
    this.#users--;
    this.expire();
    if (this.loss) return Promise.reject(thrownAt(this.loss, this.leave));
    if (this.#users > 0 || this.#state === "ended") return Promise.resolve();
    this.#state = "ended";
    this.isTaken = isTaken;
    return this.owner.vacated(this);
  }

  /**
   * A user that is about to leave wants to know from Redis that it was held so far. The last one is
   * told by the release, any other one at once.
   *
   * @throws LockLostError, LockUnavailableError.
   */
  async confirm(): Promise<void> {
    this.isConfirmed = true;
    if (this.#users > 1) await this.extend(LEASE_MIN);
  }

  /** Its release was answered, or needed no answer. */
  settle(): void {
    this.#isSettled = true;
    for (const resolve of this.#settling ?? []) resolve();
  }

  /**
   * Resolves when its release is settled, however that ended. Not by the promise of the call that
   * released it: a second caller that ignores a failure must not hide it from the first one.
   */
  settled(): Promise<void> {
    if (this.#state !== "ended" || this.#isSettled) return Promise.resolve();
    this.#settling ??= [];
    const settling = this.#settling;
    return new Promise((resolve) => settling.push(resolve));
  }

  /**
   * At least `ttl` ms from now in Redis, for an explicit lease and a watchdog's alike; never less
   * than it had. `within`: ms that the answer may take.
   *
   * @throws LockLostError, LockUnavailableError; LockError `LOCK_RELEASED` when it ended meanwhile.
   */
  async extend(ttl: number, within = Number.POSITIVE_INFINITY): Promise<void> {
    const sent = now();
    const timeout = Math.min(Math.max(this.left(), FIRST_REPLY), within);
    this.hold.asks(ttl);
    const { id, label, record } = this.hold;
    const answers = await this.owner.kind
      .renew([{ name: this.name, id, label, ttl, record, flag: null }], timeout)
      .catch((error: unknown) => {
        throw new LockUnavailableError(this.name, "its lease was not extended", error, this.noun);
      });
    const [answer = GONE] = answers;
    // A lease whose deadline has passed is not revived, as in Watchdog.
    this.expire();
    this.owner.renewed(this.hold, sent, answer);
    if (this.loss) throw thrownAt(this.loss, this.extend);
    // Unlocked meanwhile, and it is over in Redis too: this caller has lost nothing.
    if (answer.is !== "renewed") throw released(this.name, this.noun);
    this.#longest = Math.max(this.#longest, ttl);
    if (!this.terms.watchdog) this.#end = Math.max(this.#end, sent.mono + ttl);
  }

  async #recount(): Promise<void> {
    const { recount } = this.owner.kind;
    if (!recount) return;
    const answer = await recount(this.hold, this.#entries).catch((error: unknown) => {
      // The next caller would hold it with a count of others, so it gets a hold of its own.
      this.hold.mayPass = 0;
      throw new LockUnavailableError(this.name, "its hold count was not changed", error, this.noun);
    });
    if (answer !== "renewed") this.lose(answer);
    if (this.loss) throw thrownAt(this.loss, this.#recount);
  }

  #abort(): void {
    if (this.#controller) detached(() => this.#controller?.abort(this.loss));
  }
}

/** What a lease needs of the place that gave it. */
export interface LeaseOwner {
  /** Its last user has left: give the lock away. Rejects with LockLostError or LockUnavailableError. */
  vacated(lease: SharedLease): Promise<void>;
  /** It was lost: nobody here holds the lock any more. */
  lost(lease: SharedLease, error: LockLostError): void;
  /** A renewal of its hold was answered. That counts for whatever caller has the hold by now. */
  renewed(hold: Hold, sent: Instant, answer: RenewAnswer): void;
  /** Aborts when somebody waits for the lock. */
  wanted(lease: SharedLease): AbortSignal;
  /** How its lock kind talks to Redis about a hold. */
  readonly kind: Renewer & {
    readonly protocol: string;
    /** Tell Redis how often the lock was entered. Null: Redis does not care. */
    readonly recount: ((hold: Hold, count: number) => Promise<RenewAnswer["is"]>) | null;
    readonly mode?: "read" | "write";
    /** What inspections call a hold, with its random bits. Left out: its id. */
    shownAs?(hold: Hold): string;
  };
  /** Of readers inside a writer's time: its lease, while that lasts. Left out: there is none. */
  readonly writer?: SharedLease | null;
  /** Of a writer: one more lease, of a reader in its time, which may outlive that. */
  readInside?(writer: SharedLease, terms: Terms): SharedLease;
  readonly context: { readonly events: Events; readonly watchdog: { readonly timers: Timers } };
}

/** The last user of a hold that ends: a lease, or, after that has left, what is known of it. */
export interface Departure extends LockEvent {
  readonly token: number;
  /**
   * The first token for which Redis had not said before the end that the lock was ours. Undefined:
   * this one.
   */
  firstToken: number | undefined;
  readonly hold: Hold;
  /** Its release was answered, or needed no answer. */
  settle(): void;
  /** Redis has answered to its release that it was lost before. */
  lostAtRelease(error: LockLostError): void;
}

const GONE: RenewAnswer = { is: "gone", ttl: 0, waits: null, at: 0, isTold: false };
