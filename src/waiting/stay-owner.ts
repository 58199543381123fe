import { LockLostError } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import type { ReleaseAnswer, RenewAnswer, ToldDigit } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import { clocks, type Instant } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import { LockOwner } from "./lock-owner.ts";
import { type Door, isMet, mayBegin, Stay, type StayHome, ttlOf } from "./stay.ts";
import type { Waiter } from "./waiter.ts";

/** How a caller comes to a lock that its process may have kept. */
export interface Comer {
  readonly terms: Terms;
  readonly passes: number;
}

/**
 * A lock that stays with this process from caller to caller. Protects the other
 * processes from a hold that stays here too long, and callers from one that is not theirs any more.
 */
export abstract class StayOwner extends LockOwner implements StayHome {
  /** The acquisition that all callers share, and where a stay goes on. Null: none is made; or each caller has its own. */
  protected shared: Acquisition | null = null;

  /** A caller comes to a stay in which nobody is. `asks`: behind a renewal. */
  protected abstract comes(stay: Stay, asks: boolean): void;

  // ---- to the next caller here

  /** To the first caller here: now, behind a turn of the event loop, or behind a renewal. False: it must go to Redis. */
  protected override passOn(one: Acquisition, hold: Hold): boolean {
    const next = one.first;
    if (!next) return false;
    const { stays, window } = this.services;
    const mono = clocks.mono.now();
    const how = mayBegin(this.doorOf(one, hold, next), mono, clocks.wall.now());
    if (how === "end") return false;
    const stay = this.stayOf(one, hold);
    this.comes(stay, how === "ask");
    if (how === "ask") {
      stay.asks(mono);
      // Of a caller that has just come it is the first command, and has the time of one.
      const within = next.unanswered ? Math.min(window / 3, Math.max(1, next.at - mono)) : window / 3;
      void this.claim(one, hold, next, this.ttlFor(next.terms), true, within);
      return true;
    }
    // Others wait: it ends after a few more callers, before what is known of it is too old.
    const isEndless = this.kind.hasStays && hold.wantedAt === null;
    if (isEndless && stays.isTired(mono)) stays.rest(stay);
    else {
      if (isEndless) stays.begins(stay);
      this.#pass(one, stay, next);
    }
    return true;
  }

  #pass(one: Acquisition, stay: Stay, next: Waiter): void {
    this.enters(stay, next.call, next.terms);
    this.give(one, stay.hold, next);
  }

  /** One more turn. */
  protected enters(stay: Stay, call: number, terms: Terms): void {
    stay.hold.passes++;
    stay.hold.turns++;
    stay.call = call;
    stay.terms = terms;
  }

  /** Nobody is inside: the event loop has turned, or something else has changed. */
  rested(stay: Stay): void {
    const { hold } = stay;
    const one = this.shared;
    if (one?.stay !== stay || one.lease || this.claiming?.size) return;
    if (hold.isRevoked) this.#lostAlone(one, stay, "revoked");
    else if (!this.passOn(one, hold)) this.endAlone(one, stay);
  }

  protected override asked(one: Acquisition, hold: Hold, waiter: Waiter): void {
    const stay = this.stayOf(one, hold);
    if (waiter.settled) this.rested(stay);
    else if (isMet(this.doorOf(one, hold, waiter))) this.#pass(one, stay, waiter);
    else {
      // What this answer did not bring, another one would not bring either: the hold ends.
      one.putBack(waiter, true);
      this.endAlone(one, stay);
    }
  }

  protected doorOf(one: Acquisition, hold: Hold, { terms, passes }: Comer): Door {
    const { kind, services } = this;
    const { stay } = one;
    return {
      hold,
      stay,
      terms,
      // Of the caller that took the lock from Redis, and of the one that would be next: the smaller number counts.
      passes: Math.min(hold.mayPass, passes),
      window: services.window,
      hasStays: kind.hasStays,
      inbox: services.inbox,
    };
  }

  protected override ttlFor(terms: Terms): number {
    return this.kind.hasStays ? ttlOf(terms, this.services.stays.window) : terms.lease;
  }

  protected stayOf(one: Acquisition, hold: Hold): Stay {
    one.stay ??= new Stay(this, one, hold);
    return one.stay;
  }

  /** Nobody is inside, and nobody waits for what becomes of the hold. */
  protected endAlone(one: Acquisition, stay: Stay): void {
    this.end(one, stay, 0).catch(() => {});
  }

  abstract takeLeave(stay: Stay): void;
  abstract leaveAnswered(stay: Stay, answer: ReleaseAnswer | null, isBroken: boolean): void;

  // ---- what renewals bring

  stayRenewed(stay: Stay, sent: Instant, answer: RenewAnswer, told: ToldDigit | null): void {
    if (this.shared) this.renewed(this.shared, stay.hold, sent, answer, told);
  }

  /** A renewal of the watchdog, or of all stays, was answered. `told`: what it asked for. */
  renewed(one: Acquisition, hold: Hold, sent: Instant, answer: RenewAnswer, told: ToldDigit | null): void {
    // A hold that has ended since is on its way out of Redis.
    if (one.hold !== hold || one.state !== "owned") return;
    const { stay } = one;
    if (answer.is === "renewed") {
      this.heed(one, hold, sent, answer, told);
      // Nobody is inside, and somebody waits.
      if (stay?.state === "idle" && hold.wantedAt !== null) this.endAlone(one, stay);
      this.services.wanted.recalled(hold);
    }
    // RACE: another caller is inside by now. The answer is about the hold, so it is that one which has lost it.
    else if (one.lease) one.lease.lose(answer.is);
    // Where a caller waits for a renewal of its own, that one says the same.
    else if (!this.claiming?.size && stay) this.#lostAlone(one, stay, answer.is);
  }

  protected override heed(
    one: Acquisition,
    hold: Hold,
    sent: Instant,
    answer: RenewAnswer,
    told: ToldDigit | null,
  ): boolean {
    const isOurs = answer.is === "renewed" && hold.renewed(sent, answer, told);
    if (!isOurs || hold.left() <= 0 || hold.isRevoked) return false;
    const { stay } = one;
    if (stay && answer.at > stay.tokensUntil) stay.tokensUntil = answer.at;
    if (stay && sent.mono >= stay.sentAt) stay.firstToken = stay.sentToken;
    // It says that the lock is ours, and not whether anybody waits.
    if (this.kind.hasStays && answer.waits === null) hold.want(clocks.mono.now());
    return true;
  }

  /** Nobody is inside: callers that were may have lost it before they left. */
  #lostAlone(one: Acquisition, stay: Stay, reason: "gone" | "taken" | "revoked"): void {
    this.over(stay, stay);
    this.services.leave(this.kind, stay.hold);
    one.start();
    this.toldLost(stay, 0, new LockLostError(this.name, reason));
  }

  protected override tellLoss(one: Acquisition, hold: Hold, is: "gone" | "taken"): void {
    const stay = this.stayOf(one, hold);
    this.over(stay, stay);
    this.toldLost(stay, 0, new LockLostError(this.name, is));
  }
}
