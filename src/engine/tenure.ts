import { LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { fits } from "../core/fits.ts";
import { tryAgain } from "../core/lease-too-short.ts";
import type { LockKind } from "../core/lock-kind.ts";
import type { RedisHealth } from "../core/redis-health.ts";
import { SharedHold } from "../core/shared-hold.ts";
import { tellLost } from "../core/telling.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import { type Instant, now } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import type { Context } from "./context.ts";
import type { Hold } from "./lease/hold.ts";
import { refused } from "./lease/release-outcome.ts";
import { type Departure, departed, type SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { ReleaseCommand } from "./release-command.ts";
import type { Waiter } from "./waiter.ts";

/**
 * One hold that owns the lock, and its users in this process: which callers are inside, which comes
 * next without Redis, and when it goes back. Protects callers from a hold that is over,
 * force-released or too short for them, and the other processes from a hold that stays here without
 * a user.
 *
 * One caller is inside at a time (`ExclusiveTenure`).
 */
export abstract class Tenure extends SharedHold {
  declare readonly context: Context;
  protected lock: TenureHome;
  /** The caller that came in last. */
  protected last: SharedLease | null = null;
  /**
   * The first token for which Redis has not yet confirmed that the lock was ours; undefined: its
   * own.
   */
  protected firstToken: number | undefined = undefined;
  /** A caller that gets the hold as soon as a renewal is answered. */
  claiming: Waiter | null = null;

  constructor(lock: TenureHome, hold: Hold) {
    super(lock.kind, lock.context, hold);
    this.lock = lock;
  }

  /** The user, if only one can be inside; null: none is. */
  abstract readonly holder: SharedLease | null;
  /**
   * Gives it to the first caller of the line, for which the hold came, and to the later ones that
   * it serves.
   */
  protected abstract give(one: Acquisition, waiter: Waiter): void;
  // ---- it comes

  /**
   * Gives it to the first caller in line, as it is or after a claim. `isDirect`: it came by an
   * answer.
   */
  found(one: Acquisition, isDirect: boolean): void {
    const { hold, kind, context } = this;
    const head = one.line.first;
    const left = hold.left();
    const isWanted = head !== null && left > 0 && !hold.isRevoked;
    // A hold that may linger was asked for a shorter time.
    const isFull = isDirect && head !== null && hold.mayLive >= head.terms.lease;
    const how = isWanted ? fits(hold, left, head.terms, context.window, isFull) : "too much";
    if (!head || how === "too much") {
      // Either no caller wants it any more; or the message was read so late that another client may
      // have it; or it was requested by a caller with a much longer lease, which has left.
      this.leave();
      const isLate = head !== null && isDirect && !hold.isRevoked && left <= 0;
      const waits = isLate && !tryAgain(this.lock, one, head, now().mono - hold.asked.mono);
      if (!waits) one.start();
    } else if (how === "enough" && !kind.isConfirmed) this.give(one, head);
    else {
      const ttl = head.terms.lease;
      void this.claim(one, head, ttl, false, context.window / 3);
    }
  }

  /**
   * Renews the hold to `ttl` ms before a caller gets it. The hold came in time, so the caller's
   * wait is over. `isNext`: another caller of this process had it before; otherwise it is raised
   * from the grant window.
   */
  protected async claim(
    one: Acquisition,
    waiter: Waiter,
    ttl: number,
    isNext: boolean,
    within: number,
  ): Promise<void> {
    const { hold, kind } = this;
    const { health } = this.lock;
    one.line.remove(waiter);
    this.claiming = waiter;
    const sent = now();
    hold.asks(ttl, sent.mono);
    health.asked(sent.mono);
    try {
      const answer = await kind.confirm(hold, ttl, within);
      health.answered();
      this.claiming = null;
      this.context.events.step(() => this.#claimed(one, waiter, isNext, sent, answer));
    } catch (error) {
      this.claiming = null;
      this.context.events.step(() => this.#unclaimed(one, waiter, sent, error));
    }
  }

  #claimed(one: Acquisition, waiter: Waiter, isNext: boolean, sent: Instant, answer: RenewAnswer): void {
    const { hold } = this;
    if (this.applyRenewal(sent, answer)) {
      if (isNext) this.giveNext(one, waiter);
      else if (waiter.settled) this.found(one, false);
      else this.give(one, waiter);
      return;
    }
    const isOver = !hold.isRevoked && hold.left() <= 0;
    // After its deadline it has merely expired: no caller has lost it, and this caller's lease need
    // not be too short.
    const isNews = isNext && answer.is !== "renewed" && !isOver;
    // RACE: the hold may have been granted again. So a failed claim withdraws it.
    this.leave();
    // A caller that has left may have lost it before.
    if (isNews) tellLost(this.context.events, this.nobody(), 0, new LockLostError(hold.name, answer.is));
    if (!waiter.settled) one.line.putBack(waiter, isNext);
    const isLate = isOver && waiter.listed && !isNext;
    if (!isLate || tryAgain(this.lock, one, waiter, now().mono - sent.mono)) one.start();
  }

  #unclaimed(one: Acquisition, waiter: Waiter, sent: Instant, error: unknown): void {
    const { hold, kind } = this;
    const { health } = this.lock;
    this.leave();
    const refusal = kind.isConfirmed ? refused(hold.name, error, kind) : null;
    if (!refusal) {
      health.failed(error);
      if (!waiter.settled) one.line.putBack(waiter);
      one.retry();
      return;
    }
    health.answered();
    one.line.refuse(waiter, refusal());
    // All that have waited as long get the same: asked one by one, the last of n would get its
    // answer after n timeouts of replicas.
    this.lock.refuseSince(sent.mono, refusal);
    one.start();
  }

  /** A renewal for the next caller in line was answered: it gets the hold, or the hold ends. */
  protected giveNext(one: Acquisition, waiter: Waiter): void {
    this.give(one, waiter);
  }

  // ---- its users come and go

  protected override enter(terms: Terms, caller: Caller): SharedLease {
    this.last = super.enter(terms, caller);
    return this.last;
  }

  /** A caller of the line enters. */
  protected letIn(one: Acquisition, waiter: Waiter, lease: SharedLease): void {
    one.leaseTooShort = null;
    one.line.remove(waiter);
    waiter.give(lease);
  }

  // ---- it ends

  /**
   * Releases it for others. `by`: the last user. `waiting`: the acquisition that waits here for
   * that.
   */
  protected release(by: Departure, held: number, waiting: { woken(): void } | null): Promise<void> {
    this.end(by);
    this.ending.sent();
    // A plain promise: its rejections get the caller's line where they are made.
    return new Promise((resolve) => {
      this.kind.release(this.hold, new ReleaseCommand(this, by, held, waiting, resolve));
    });
  }

  protected override end(by: Departure | null): void {
    if (this.isOver) return;
    if (by) by.firstToken = this.firstToken;
    super.end(by);
    this.lock.ended(this);
  }

  override leave(by: Departure | null = null): void {
    if (!this.isOver) this.end(by);
    this.context.leave(this.kind, this.hold);
  }

  /** The last user has left: no caller waits for the answer about the hold. */
  protected nobody(): Departure {
    if (!this.last) throw new TypeError("no caller was inside");
    return departed(this.last, this.firstToken);
  }
}

/** What a tenure needs of its lock, and reports to it. */
export interface TenureHome {
  readonly kind: LockKind;
  readonly name: string;
  readonly context: Context;
  readonly health: RedisHealth;
  /** Subscribes when a caller of this process waits. */
  readonly channel: { readonly isHeard: boolean; listen(): void };
  /** The acquisition of all callers here; null: there is none, or each caller has its own. */
  readonly shared: Acquisition | null;
  /** It is over. */
  ended(tenure: Tenure): void;
  /** Refuses callers that have waited since before then: more tries would end the same way. */
  refuseSince(before: number, error: () => Error): void;
}
