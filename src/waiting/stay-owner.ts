import { STAY_WINDOW } from "../defaults.ts";
import { LockLostError } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import type { Instant } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import { LockOwner } from "./lock-owner.ts";
import { type Door, isMet, mayBegin, Stay } from "./stay.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A lock that stays with this process from caller to caller. Protects the other processes from a hold that stays here too long,
 * and callers from one that is not theirs any more.
 */
export abstract class StayOwner extends LockOwner {
  /** To the first caller here: now, behind a turn of the event loop, or behind a renewal. False: it must go to Redis. */
  protected override passOn(one: Acquisition, hold: Hold): boolean {
    const next = one.first;
    if (!next) return false;
    const { stays } = this.services;
    const mono = performance.now();
    const how = mayBegin(this.#doorOf(one, hold, next), mono, Date.now());
    if (how === "end") return false;
    const stay = this.#stayOf(one, hold);
    if (how === "ask") {
      stay.sentAt = mono;
      void this.claim(one, hold, next, this.#ttlFor(next), true);
    } else if (this.kind.hasStays && stays.isTired(mono)) stays.rest(stay);
    else {
      if (this.kind.hasStays) stays.begins(stay);
      this.#pass(one, stay, next);
    }
    return true;
  }

  #pass(one: Acquisition, stay: Stay, next: Waiter): void {
    const { hold } = stay;
    hold.passes++;
    hold.turns++;
    stay.call = next.call;
    stay.lease = next.terms.lease;
    this.give(one, hold, next);
  }

  /** The event loop has turned. */
  rested(one: Acquisition, stay: Stay): void {
    const { hold } = stay;
    if (one.lease || this.claiming?.size) return;
    if (hold.isRevoked) this.#lostAlone(one, stay, "revoked");
    else if (!this.passOn(one, hold)) this.#endAlone(one, stay);
  }

  protected override asked(one: Acquisition, hold: Hold, waiter: Waiter): void {
    const stay = this.#stayOf(one, hold);
    if (waiter.settled) this.rested(one, stay);
    else if (isMet(this.#doorOf(one, hold, waiter))) this.#pass(one, stay, waiter);
    else {
      // What this answer did not bring, another one would not bring either: the hold ends.
      one.putBack(waiter);
      this.#endAlone(one, stay);
    }
  }

  #doorOf(one: Acquisition, hold: Hold, { terms, passes }: Waiter): Door {
    const { kind, services, channel } = this;
    return {
      hold,
      stay: one.stay,
      terms,
      // Of the caller that took the lock from Redis, and of the one that would be next: the smaller number counts.
      passes: Math.min(hold.mayPass, passes),
      window: services.window,
      hasStays: kind.hasStays,
      channel,
    };
  }

  /** What the hold is raised to for this caller. A watchdog's lease is claimed when its caller stays. */
  #ttlFor({ terms }: Waiter): number {
    const { kind, services } = this;
    if (!terms.watchdog || !kind.hasStays) return terms.lease;
    return Math.min(terms.lease, services.window, STAY_WINDOW);
  }

  #stayOf(one: Acquisition, hold: Hold): Stay {
    one.stay ??= new Stay(one, hold);
    return one.stay;
  }

  /** Nobody is inside, and nobody waits for what becomes of the hold. */
  #endAlone(one: Acquisition, stay: Stay): void {
    this.end(one, stay, 0).catch(() => {});
  }

  // ---- what renewals bring

  /** A renewal of the watchdog, or of all stays, was answered. */
  renewed(one: Acquisition, hold: Hold, sent: Instant, answer: RenewAnswer): void {
    // A hold that has ended since is on its way out of Redis.
    if (one.hold !== hold || one.state !== "owned") return;
    if (answer.is === "renewed") this.heed(one, hold, sent, answer);
    // RACE: another caller is inside by now. The answer is about the hold, so it is that one which has lost it.
    else if (one.lease) one.lease.lose(answer.is);
    // Where a caller waits for a renewal of its own, that one says the same.
    else if (!this.claiming?.size && one.stay) this.#lostAlone(one, one.stay, answer.is);
  }

  protected override heed(one: Acquisition, hold: Hold, sent: Instant, answer: RenewAnswer): boolean {
    if (answer.is !== "renewed" || !hold.renewed(sent, answer) || hold.left() <= 0 || hold.isRevoked)
      return false;
    const { stay } = one;
    if (stay && answer.at > stay.tokensUntil) stay.tokensUntil = answer.at;
    // It says that the lock is ours, and not whether anybody waits.
    if (this.kind.hasStays && answer.waits === null) hold.want(performance.now());
    return true;
  }

  /** Nobody is inside: callers that were may have lost it before they left. */
  #lostAlone(one: Acquisition, stay: Stay, reason: "gone" | "taken" | "revoked"): void {
    this.services.leave(this.kind, stay.hold);
    one.start();
    this.toldLost(stay, 0, new LockLostError(this.name, reason));
  }

  protected override tellLoss(one: Acquisition, hold: Hold, is: "gone" | "taken"): void {
    this.toldLost(this.#stayOf(one, hold), 0, new LockLostError(this.name, is));
  }
}
