import type { LockLostError } from "../errors.ts";
import { ofHolder, ofLoss } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import { DONE, refused, releaseOutcome, unconfirmed } from "../lease/release-outcome.ts";
import { SharedLease, type Turn } from "../lease/shared-lease.ts";
import type { ReleaseAnswer, RenewAnswer, ToldDigit } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { isEnding } from "../util/process-end.ts";
import { failing } from "../util/stacks.ts";
import type { Acquisition } from "./acquisition.ts";
import { suits } from "./handover.ts";
import type { LockChannel } from "./lock-channel.ts";
import type { LockKind, Told } from "./lock-kind.ts";
import { tryAgain } from "./outrun.ts";
import { RedisHealth } from "./redis-health.ts";
import type { Services } from "./services.ts";
import type { Stay } from "./stay.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A lock that this process owns: what is found goes to a caller here, at once or behind a renewal; what its last caller gives
 * back goes to Redis. Protects callers from a hold that is over, taken away or too short for them, and the other processes from
 * a hold that stays here without a caller.
 */
export abstract class LockOwner {
  readonly kind: LockKind;
  readonly name: string;
  readonly services: Services;
  /** What is known of Redis counts for all callers at one lock. */
  readonly health = new RedisHealth();
  /** Callers that wait for a renewal. Null: there were none yet. */
  protected claiming: Set<Waiter> | null = null;

  abstract readonly channel: LockChannel;

  constructor(kind: LockKind, name: string, services: Services) {
    this.kind = kind;
    this.name = name;
    this.services = services;
  }

  /** These callers have waited since before then, and more tries would end the same for them. */
  protected abstract refuseSince(before: number, error: () => Error): void;
  /** What the lock's value is to say of this process: 0: it is not told of waiters; 1: it is. 2: as 1, and nobody may be inside. */
  get told(): ToldDigit {
    return this.kind.hasStays && this.services.inbox.hears(this.name) ? 1 : 0;
  }

  /** To the first caller here. False: the hold must go to Redis. */
  protected abstract passOn(one: Acquisition, hold: Hold): boolean;
  /** Takes what a renewal has brought. False: nothing that counts. */
  protected abstract heed(
    one: Acquisition,
    hold: Hold,
    sent: Instant,
    answer: RenewAnswer,
    told: ToldDigit | null,
  ): boolean;
  /** It stays with this process, though nobody waits for it. False: it must go to Redis. */
  protected abstract keep(one: Acquisition, lease: SharedLease): boolean;
  /** A stay ends, with this turn as the last one. */
  protected abstract over(stay: Stay, turn: Turn): void;
  /** What a hold is raised to for a caller that is next in it, in ms. */
  protected abstract ttlFor(terms: Terms): number;
  /** The renewal for the next caller was answered: it gets the hold, or the hold ends. */
  protected abstract asked(one: Acquisition, hold: Hold, waiter: Waiter): void;
  /** A caller that has left may have lost it before. */
  protected abstract tellLoss(one: Acquisition, hold: Hold, is: "gone" | "taken"): void;

  /** To the first caller, as it is or after a claim. */
  found(one: Acquisition, hold: Hold, isDirect: boolean): void {
    const head = one.first;
    const left = hold.left();
    const isWanted = head !== null && left > 0 && !hold.isRevoked;
    // One that may linger was not asked for so long.
    const isFull = isDirect && head !== null && hold.mayLive >= head.terms.lease;
    const how = isWanted ? suits(hold, left, head.terms, this.services.window, isFull) : "too much";
    if (!head || how === "too much") {
      // Nobody wants it any more; or the message was read so late that another client may have it; or it was asked for by
      // a caller with a much longer lease, which has left.
      this.services.leave(this.kind, hold);
      if (head && isDirect && !hold.isRevoked && left <= 0)
        tryAgain(this, one, head, now().mono - hold.asked.mono);
      else one.start();
    } else if (how === "enough" && !this.kind.isConfirmed) this.give(one, hold, head);
    else void this.claim(one, hold, head, hold.lingers ? this.ttlFor(head.terms) : head.terms.lease, false);
  }

  protected give(one: Acquisition, hold: Hold, waiter: Waiter): void {
    const { watchdog, events } = this.services;
    const lease = new SharedLease(hold, waiter.terms, one, waiter);
    one.lease = lease;
    one.outrun = null;
    watchdog.watch(lease);
    one.remove(waiter);
    waiter.give(lease);
    if (one.first) {
      one.tellBusy();
      if (one.first) this.channel.listen();
    }
    if (events.isUsed && events.hears("acquire")) {
      const waited = clocks.mono.now() - waiter.since;
      events.tell("acquire", { ...ofHolder(lease), waitedFor: waited, passed: hold.passes > 0, kept: false });
    }
  }

  /**
   * Has a hold renewed before a caller gets it, for so many ms. It came in time, so the caller's wait is over. `isNext`: another
   * caller of this process has had it before; else it is raised from the grant window.
   */
  protected async claim(
    one: Acquisition,
    hold: Hold,
    waiter: Waiter,
    ttl: number,
    isNext: boolean,
    within = this.services.window / 3,
  ): Promise<void> {
    const { health, kind, services } = this;
    one.remove(waiter);
    this.claiming ??= new Set();
    this.claiming.add(waiter);
    const sent = now();
    const told = this.told && waiter.terms.linger > 0 ? 2 : this.told;
    hold.asks(ttl, sent.mono);
    health.askedAt ||= sent.mono;
    try {
      const answer = await kind.confirm(hold, ttl, within, told);
      health.answered();
      this.claiming?.delete(waiter);
      if (this.heed(one, hold, sent, answer, told)) {
        if (isNext) this.asked(one, hold, waiter);
        else if (waiter.settled) this.found(one, hold, false);
        else this.give(one, hold, waiter);
        return;
      }
      const isOver = !hold.isRevoked && hold.left() <= 0;
      // Behind its deadline it has just run out: nobody's loss, and no sign that the lease of this caller is too short.
      if (isNext && answer.is !== "renewed" && !isOver) this.tellLoss(one, hold, answer.is);
      // RACE: the hold may have been granted again. A claim in vain is followed by leaving it.
      services.leave(kind, hold);
      if (!waiter.settled) one.putBack(waiter, isNext);
      if (isOver && waiter.listed && !isNext) tryAgain(this, one, waiter, now().mono - sent.mono);
      else one.start();
    } catch (error) {
      this.claiming?.delete(waiter);
      services.leave(kind, hold);
      const refusal = kind.isConfirmed ? refused(this.name, error, kind) : null;
      if (!refusal) {
        health.failed(error);
        if (!waiter.settled) one.putBack(waiter);
        one.retry();
        return;
      }
      health.answered();
      one.refuse(waiter, refusal());
      // The same for all that have waited so long: asked one by one, the last of n would hear it after n timeouts of replicas.
      this.refuseSince(sent.mono, refusal);
      one.start();
    }
  }

  // ---- and goes

  /** Its last user has left: to the next caller here, or to Redis. */
  vacated(one: Acquisition, lease: SharedLease): Promise<void> {
    const { watchdog, events, wanted } = this.services;
    watchdog.leases.delete(lease);
    if (wanted.leases.size > 0) wanted.ended(lease.hold);
    one.lease = null;
    const held = clocks.mono.now() - lease.since;
    if (events.isUsed && !lease.isTaken && events.hears("release"))
      events.tell("release", { ...ofHolder(lease), heldFor: held });
    // RACE: the process ends: the next caller here would have it, and would never know.
    if (lease.isConfirmed || isEnding) return this.#release(one, lease, held);
    if (one.first) {
      if (!this.passOn(one, lease.hold)) return this.end(one, lease, held);
    } else if (lease.terms.linger === 0 || !this.keep(one, lease)) return this.#release(one, lease, held);
    lease.settle();
    return DONE;
  }

  /** In favour of other processes. `held`: for how many ms. */
  protected end(one: Acquisition, turn: Turn, held: number): Promise<void> {
    const next = one.patient > 0 && this.kind.yield && this.channel.isHeard ? one.first : null;
    return next ? this.#yield(one, turn, held, next) : this.#release(one, turn, held);
  }

  #release(one: Acquisition, turn: Turn, held: number): Promise<void> {
    const { hold } = turn;
    const { inbox, cleanup } = this.services;
    if (one.stay) this.over(one.stay, turn);
    cleanup.releases++;
    // A plain promise: its rejections get the caller's line where they are made.
    const released = new Promise<void>((resolve) => {
      this.kind.release(hold, new Release(this, one, turn, held, resolve));
    });
    inbox.forget(hold);
    const { by } = this.kind.wake;
    if (!one.first) one.stop();
    // RACE: a command that asked for it now would take it for a process that has ended.
    else if (isEnding) one.retry();
    // With messages, our own one wakes us together with everybody else. A queue is joined behind the release.
    else if (by === "time") one.coolDown(clocks.mono.now() - hold.ownedAt);
    else if (by === "message" && this.channel.isHeard) one.parkForRelease();
    else one.start();
    return released;
  }

  async #yield(one: Acquisition, turn: Turn, held: number, next: Waiter): Promise<void> {
    const { hold } = turn;
    const { commands, inbox } = this.services;
    const { epoch } = commands;
    if (one.stay) this.over(one.stay, turn);
    inbox.forget(hold);
    let loss: LockLostError | null;
    try {
      const answer = await one.yield(hold, next);
      loss = answer && this.lossOf(turn, held, answer, commands.epoch !== epoch);
    } catch (error) {
      throw unconfirmed(hold, error, this.kind);
    } finally {
      turn.settle();
    }
    if (loss) throw loss;
  }

  /** Was the lock lost before its release? Then its holder is told. */
  lossOf(turn: Turn, held: number, answer: ReleaseAnswer, isBroken: boolean): LockLostError | null {
    const loss = answer.is === "released" ? null : releaseOutcome(turn.hold, answer, isBroken, this.kind);
    if (!loss) return null;
    turn.lostAtRelease(loss);
    return this.toldLost(turn, held, loss);
  }

  lost(one: Acquisition, lease: SharedLease, error: LockLostError): void {
    this.services.watchdog.leases.delete(lease);
    this.services.leave(this.kind, lease.hold);
    if (one.lease === lease) {
      if (one.stay) this.over(one.stay, lease);
      one.lease = null;
      one.start();
    }
    this.toldLost(lease, clocks.mono.now() - lease.since, error);
  }

  toldLost(turn: Turn, held: number, error: LockLostError): LockLostError {
    const { events } = this.services;
    if (events.hears("lost")) events.tell("lost", ofLoss(turn, held, error));
    return error;
  }
}

/** A release on its way. `woken`: no message will come. */
export class Release implements Told<ReleaseAnswer> {
  readonly #epoch: number;

  constructor(
    private readonly owner: Pick<LockOwner, "kind" | "services" | "lossOf">,
    private readonly one: { woken(): void },
    private readonly turn: Turn,
    private readonly held: number,
    private readonly resolve: (failed: undefined | Promise<never>) => void,
  ) {
    this.#epoch = owner.services.commands.epoch;
  }

  answered(answer: ReleaseAnswer): void {
    const { commands, cleanup } = this.owner.services;
    let loss: LockLostError | null = null;
    if (answer.is !== "released") {
      // Nothing was released, so no message is sent, and we were waiting for it.
      this.one.woken();
      loss = this.owner.lossOf(this.turn, this.held, answer, commands.epoch !== this.#epoch);
    }
    cleanup.releases--;
    this.turn.settle();
    this.resolve(loss ? failing(loss) : undefined);
    if (cleanup.isEnding) cleanup.look();
  }

  failed(error: unknown): void {
    const { hold } = this.turn;
    const { services, kind } = this.owner;
    this.one.woken();
    services.leave(kind, hold);
    services.cleanup.releases--;
    this.turn.settle();
    this.resolve(failing(unconfirmed(hold, error, kind)));
    if (services.cleanup.isEnding) services.cleanup.look();
  }
}
