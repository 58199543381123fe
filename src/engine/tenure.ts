import { LockLostError } from "../api/errors.ts";
import { fits } from "../core/fits.ts";
import { tryAgain } from "../core/lease-too-short.ts";
import type { LockKind } from "../core/lock-kind.ts";
import type { RedisHealth } from "../core/redis-health.ts";
import { SharedHold } from "../core/shared-hold.ts";
import { lossOf, tellAcquired, tellLost } from "../core/telling.ts";
import type { HolderFlag, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import type { Context } from "./context.ts";
import { type Keeping, type KeptTenure, newKeeping } from "./idle-tenures.ts";
import type { Hold } from "./lease/hold.ts";
import { refused } from "./lease/release-outcome.ts";
import type { Departure, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { ASKED, type KeptEnd, TAKEN } from "./linger-learner.ts";
import { ReleaseCommand } from "./release-command.ts";
import type { Waiter } from "./waiter.ts";

/**
 * One hold that owns the lock, and its users in this process: which callers are inside, which comes
 * next without Redis, and when it goes back. Protects callers from a hold that is over,
 * force-released or too short for them, and the other processes from a hold that stays here without
 * a user.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | inside | ours until the deadline; a user, or a caller that waits for a renewal or for a turn of the event loop | the last user leaves → the next one is inside · idle · leaving · ended |
 * | idle | the same, at most for the window; no caller is inside, nothing was sent | a caller → inside · wanted, its time over, too many, no subscription, the client closes → ended |
 * | leaving | the same until the end of this turn of the event loop | a caller → inside · turned → ended |
 * | ended | a release, yield or leave is on its way | – |
 *
 * Subclasses differ in whether one caller is inside at a time (`ExclusiveTenure`), or all readers
 * (`SharedTenure`).
 */
export abstract class Tenure extends SharedHold implements KeptTenure {
  declare readonly context: Context;
  protected lock: TenureHome;
  state: "inside" | "idle" | "leaving" | "ended" = "inside";
  /** How it stays here while idle. Null: it was never idle. */
  keeping: Keeping | null = null;
  /** The call that was inside last, and its terms. */
  call = 0;
  terms: Terms = NO_TERMS;
  /** When a caller that does not wait last got the answer that a caller is inside. */
  protected triedAt = Number.NEGATIVE_INFINITY;
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
  /** Was it ever without a user? */
  get wasKept(): boolean {
    return this.keeping !== null;
  }

  /** May this caller in line enter after a command about the hold? True: it was sent. */
  joinedBy(_one: Acquisition, _first: Waiter): boolean {
    return false;
  }

  /** TTL to request for the next caller in it, in ms. */
  protected ttlFor({ lease }: Terms): number {
    return lease;
  }

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
      const ttl = hold.lingers ? this.ttlFor(head.terms) : head.terms.lease;
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
    const flag = this.lock.flag && waiter.terms.linger > 0 ? 2 : this.lock.flag;
    hold.asks(ttl, sent.mono);
    health.asked(sent.mono);
    try {
      const answer = await kind.confirm(hold, ttl, within, flag);
      health.answered();
      this.claiming = null;
      this.context.events.step(() => this.#claimed(one, waiter, isNext, sent, answer, flag));
    } catch (error) {
      this.claiming = null;
      this.context.events.step(() => this.#unclaimed(one, waiter, sent, error));
    }
  }

  #claimed(
    one: Acquisition,
    waiter: Waiter,
    isNext: boolean,
    sent: Instant,
    answer: RenewAnswer,
    flag: HolderFlag,
  ): void {
    const { hold } = this;
    if (this.applyRenewal(sent, answer, flag)) {
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

  /** A caller of the line enters. `isPassed`: by a local hand-off. */
  protected admit(one: Acquisition, waiter: Waiter, lease: SharedLease, isPassed: boolean): void {
    this.letIn(one, waiter, lease);
    const { events } = this.context;
    if (events.isUsed) tellAcquired(events, lease, clocks.mono.now() - waiter.since, isPassed, false);
  }

  /** The same, without events. */
  protected letIn(one: Acquisition, waiter: Waiter, lease: SharedLease): void {
    one.leaseTooShort = null;
    one.line.remove(waiter);
    waiter.give(lease);
  }

  // ---- it stays while idle

  /** The name under which this client remembers whether it is worth keeping. */
  protected get known(): string {
    return this.hold.name;
  }

  /** Could another process recall it, and would none wait too long if this one died? */
  protected mayStay(mono: number): boolean {
    const { hold, context } = this;
    const { idle, commands, inbox } = context;
    // RACE: a claim or an extension may be under way. The TTL that it sets counts, not the known
    // one: if this process died, others would wait that long for an unused lock.
    const isTooLong = hold.mayLiveUntil > mono + idle.window;
    if (!isTooLong && !commands.isAway && inbox.hears(hold.name)) return true;
    if (hold.lingers) this.learn(isTooLong ? "not kept" : "given up");
    return false;
  }

  /** No caller is inside from now on, at most until `until`. */
  protected becomeIdle(mono: number, until: number): void {
    const { linger, idle } = this.context;
    this.keeping ??= newKeeping();
    this.state = "idle";
    this.keeping.since = mono;
    this.keeping.until = until;
    linger.stats.kept++;
    idle.keep(this);
  }

  /** A caller is inside again, or will be. `asks`: after a command. */
  protected reopen(asks: boolean): void {
    const { linger } = this.context;
    const { keeping, state } = this;
    if (keeping && state === "idle") {
      linger.stats.kept--;
      if (!asks) linger.stats.takenAgain++;
      keeping.uses++;
      keeping.saved += asks ? ASKED : TAKEN;
    } else if (state === "leaving") linger.passedBack(this.known, true);
    this.state = "inside";
  }

  /** Reports to the policy how it ended. */
  protected learn(how: KeptEnd): void {
    const { linger } = this.context;
    linger.ended(this.known, how, this.keeping?.saved ?? 0, clocks.mono.now());
  }

  /** Another process wants the cached lock, and its release was sent. */
  protected tellRecalled(): void {
    const { commands, events } = this.context;
    if (!this.keeping || !events.hears("recall")) return;
    // RACE: a listener that blocks the event loop would delay the release that others wait for.
    commands.flush();
    const { since, uses } = this.keeping;
    events.tell("recall", {
      name: this.hold.name,
      kind: this.kind.eventKind,
      idle: clocks.mono.now() - since,
      uses,
    });
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
    const { linger } = this.context;
    const { state } = this;
    if (state === "ended") return;
    if (by) by.firstToken = this.firstToken;
    this.state = "ended";
    if (state === "idle") linger.stats.kept--;
    if (state === "leaving") linger.passedBack(this.known, false);
    super.end(by);
    this.lock.ended(this);
    if (this.keeping || this.hold.lingers) this.learnEnd(state === "idle");
  }

  /** It has ended; `wasIdle`: while idle. */
  protected learnEnd(_wasIdle: boolean): void {}

  /** It ends while idle, and its release is sent together with others. */
  takeLeave(): void {
    this.end(null);
    this.ending.sent();
  }

  /** The release was answered; null: it was not. */
  leaveAnswered(answer: ReleaseAnswer | null, isBroken: boolean): void {
    if (answer === null) this.context.leave(this.kind, this.hold);
    else lossOf(this, this.nobody(), 0, answer, isBroken);
    this.ending.answered({ answer, isBroken });
  }

  /** A record of the last user, which has left: no caller waits for the answer about the hold. */
  protected nobody(): Departure {
    const { hold, call, terms } = this;
    return {
      name: hold.name,
      kind: this.kind.eventKind,
      call,
      units: terms.permits?.units,
      token: hold.token + hold.passes,
      firstToken: this.firstToken,
      hold,
      settle() {},
      lostAtRelease() {},
    };
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
  /** What the lock's value should say about this process. */
  readonly flag: HolderFlag;
  /** The acquisition of all callers here; null: there is none, or each caller has its own. */
  readonly shared: Acquisition | null;
  /** Does a caller of this process want to write while readers share the lock? */
  readonly hasWriter: boolean;
  /** When the first of these began to wait; Infinity: there is none. */
  readonly writerSince: number;
  /** The same lock, for its readers. */
  readonly readers: TenureHome;
  /** It has its own hold from now on. */
  began(tenure: Tenure): void;
  /** Whether callers may enter without joining the line may have changed. */
  look(): void;
  /** It is over. */
  ended(tenure: Tenure): void;
  /** Refuses callers that have waited since before then: more tries would end the same way. */
  refuseSince(before: number, error: () => Error): void;
}

const NO_TERMS: Terms = {
  lease: 0,
  watchdog: true,
  maxHold: Number.POSITIVE_INFINITY,
  linger: 0,
};
