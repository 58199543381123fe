import type { LockLostError } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import { refused, releaseOutcome, unconfirmed } from "../lease/release-outcome.ts";
import { SharedLease, told } from "../lease/shared-lease.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import { now } from "../util/clock.ts";
import { failing } from "../util/stacks.ts";
import type { Acquisition } from "./acquisition.ts";
import { handover, suits } from "./handover.ts";
import type { LockChannel } from "./lock-channel.ts";
import type { LockKind, Told } from "./lock-kind.ts";
import { Outrun } from "./outrun.ts";
import { RedisHealth } from "./redis-health.ts";
import type { Services } from "./services.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A lock that this process owns: what is found goes to a caller here, at once or after a claim; what a caller gives back goes
 * on to the next one here, or to Redis. Protects callers from a hold that is over, taken away or too short for them, and the
 * other processes from a hold that stays here without a caller, or too long.
 */
export abstract class LockOwner {
  readonly kind: LockKind;
  readonly name: string;
  readonly services: Services;
  /** What is known of Redis counts for all callers at one lock. */
  readonly health = new RedisHealth();
  /** Callers that get the lock as soon as it is claimed. Null: there were none yet. */
  protected claiming: Set<Waiter> | null = null;

  abstract readonly channel: LockChannel;

  constructor(kind: LockKind, name: string, services: Services) {
    this.kind = kind;
    this.name = name;
    this.services = services;
  }

  /** These callers have waited since before then, and more tries would end the same for them. */
  protected abstract refuseSince(before: number, error: () => Error): void;

  // ---- the lock comes

  /** To the first caller, as it is or after a claim. */
  found(one: Acquisition, hold: Hold, isDirect: boolean): void {
    const head = one.first;
    const left = hold.left();
    const isWanted = head !== null && left > 0 && !hold.isRevoked && hold.passes <= head.passes;
    const how = isWanted ? suits(hold, left, head.terms, this.services.window, isDirect) : "too much";
    if (!head || how === "too much") {
      // Nobody wants it any more; or the message was read so late that another client may have it; or it was asked for by
      // a caller with a much longer lease, or one that takes more passes, which has left.
      this.services.leave(this.kind, hold);
      if (head && isDirect && !hold.isRevoked && left <= 0)
        this.#outran(one, head, now().mono - hold.asked.mono);
      else one.start();
    } else if (how === "enough" && !this.kind.isConfirmed) this.#give(one, hold, head);
    else void this.#claim(one, hold, head);
  }

  #give(one: Acquisition, hold: Hold, waiter: Waiter): void {
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
    if (events.isUsed && events.hears("acquire"))
      events.tell("acquire", {
        ...told(lease),
        waited: performance.now() - waiter.since,
        kept: false,
      });
  }

  /** Raises a granted lock to its full lease before the caller gets it. It was granted in time, so the caller's wait is over. */
  async #claim(one: Acquisition, hold: Hold, waiter: Waiter): Promise<void> {
    const { health, kind, services } = this;
    const { lease } = waiter.terms;
    one.remove(waiter);
    this.claiming ??= new Set();
    this.claiming.add(waiter);
    const sent = now();
    hold.asks(lease);
    health.askedAt ||= sent.mono;
    try {
      const answer = await kind.confirm(hold, lease, services.window / 3);
      health.answered();
      this.claiming?.delete(waiter);
      const isInTime = answer.is === "renewed" && hold.renewed(sent, answer) && hold.left() > 0;
      if (isInTime && !hold.isRevoked) {
        if (waiter.settled) this.found(one, hold, false);
        else this.#give(one, hold, waiter);
        return;
      }
      const isOver = !hold.isRevoked && hold.left() <= 0;
      // RACE: the hold may have been granted again. A claim in vain is followed by leaving it.
      services.leave(kind, hold);
      if (!waiter.settled) one.putBack(waiter);
      if (isOver && waiter.listed) this.#outran(one, waiter, now().mono - sent.mono);
      else one.start();
    } catch (error) {
      this.claiming?.delete(waiter);
      services.leave(kind, hold);
      const refusal = kind.isConfirmed ? refused(this.name, error) : null;
      if (!refusal) {
        health.failed(error);
        if (!waiter.settled) one.putBack(waiter);
        one.retry();
        return;
      }
      health.answered();
      one.refuse(waiter, refusal());
      // For a caller that has waited all the while the answer is the same. Asked one by one, the last of n would hear it
      // after n times the replicas' timeout.
      this.refuseSince(sent.mono, refusal);
      one.start();
    }
  }

  /** The lock was given, and the lease of this caller was over when the answer came: tried again after a pause, for a while. */
  #outran(one: Acquisition, waiter: Waiter, took: number): void {
    if (one.outrun?.waiter !== waiter) one.outrun = new Outrun(waiter);
    const { outrun } = one;
    if (!outrun.add(took)) {
      this.health.failed(outrun.refusal(this.name));
      one.retry(outrun.tries);
      return;
    }
    // Every caller that waits here with such a lease would fare the same. One with a longer lease is served at once.
    for (const other of [...one]) {
      const { lease } = other.terms;
      if (lease <= waiter.terms.lease) one.refuse(other, outrun.refusal(this.name, lease));
    }
    one.start();
  }

  // ---- and goes

  /** Its last user has left: to the next caller here, or to Redis. */
  vacated(one: Acquisition, lease: SharedLease): Promise<void> {
    const { hold } = lease;
    const { watchdog, events, window } = this.services;
    watchdog.leases.delete(lease);
    one.lease = null;
    const held = performance.now() - lease.since;
    if (events.isUsed && events.hears("release")) events.tell("release", { ...told(lease), held });
    const next = one.first;
    if (!next || lease.isConfirmed) return this.#release(one, lease, held);
    // Of the caller that took the lock from Redis, and of the one that would be next: the smaller number counts.
    const how = handover(hold, next.terms, Math.min(hold.mayPass, next.passes), window);
    if (how === "yield") {
      if (this.kind.yield && this.channel.isHeard) return this.#yield(one, lease, held, next);
      return this.#release(one, lease, held);
    }
    hold.passes++;
    lease.settle();
    if (how === "pass") this.#give(one, hold, next);
    else void this.#claim(one, hold, next);
    return Promise.resolve();
  }

  /** `held`: for how many ms. */
  #release(one: Acquisition, lease: SharedLease, held: number): Promise<void> {
    const { hold } = lease;
    const { inbox, cleanup } = this.services;
    cleanup.releases++;
    // A plain promise: its rejections get the caller's line where they are made.
    const released = new Promise<void>((resolve) => {
      this.kind.release(hold, new Release(this, one, lease, held, resolve));
    });
    inbox.forget(hold);
    const { by } = this.kind.wake;
    if (!one.first) one.stop();
    // With messages, our own one wakes us together with everybody else. A queue is joined behind the release.
    else if (by === "time") one.coolDown(performance.now() - hold.ownedAt);
    else if (by === "message" && this.channel.isHeard) one.parkForRelease();
    else one.start();
    return released;
  }

  async #yield(one: Acquisition, lease: SharedLease, held: number, next: Waiter): Promise<void> {
    const { hold } = lease;
    const { commands, inbox } = this.services;
    const { epoch } = commands;
    inbox.forget(hold);
    let loss: LockLostError | null;
    try {
      const answer = await one.yield(hold, next);
      loss = answer && this.lossOf(lease, held, answer, commands.epoch !== epoch);
    } catch (error) {
      throw unconfirmed(hold, error);
    } finally {
      lease.settle();
    }
    if (loss) throw loss;
  }

  /** Was the lock lost before its release? Then its holder is told. */
  lossOf(lease: SharedLease, held: number, answer: ReleaseAnswer, isBroken: boolean): LockLostError | null {
    const loss = answer.is === "released" ? null : releaseOutcome(lease.hold, answer, isBroken);
    if (!loss) return null;
    lease.lostAtRelease(loss);
    return this.#toldLost(lease, held, loss);
  }

  lost(one: Acquisition, lease: SharedLease, error: LockLostError): void {
    this.services.watchdog.leases.delete(lease);
    this.services.leave(this.kind, lease.hold);
    if (one.lease === lease) {
      one.lease = null;
      one.start();
    }
    this.#toldLost(lease, performance.now() - lease.since, error);
  }

  #toldLost(lease: SharedLease, held: number, error: LockLostError): LockLostError {
    const { events } = this.services;
    if (events.isUsed && events.hears("lost")) events.tell("lost", { ...told(lease), held, error });
    return error;
  }
}

/** A release on its way. */
class Release implements Told<ReleaseAnswer> {
  readonly #owner: LockOwner;
  readonly #one: Acquisition;
  readonly #lease: SharedLease;
  readonly #held: number;
  readonly #epoch: number;
  readonly #resolve: (failed: undefined | Promise<never>) => void;

  /** `held`: for how many ms. */
  constructor(
    owner: LockOwner,
    one: Acquisition,
    lease: SharedLease,
    held: number,
    resolve: (failed: undefined | Promise<never>) => void,
  ) {
    this.#owner = owner;
    this.#one = one;
    this.#lease = lease;
    this.#held = held;
    this.#epoch = owner.services.commands.epoch;
    this.#resolve = resolve;
  }

  answered(answer: ReleaseAnswer): void {
    const { commands, cleanup } = this.#owner.services;
    let loss: LockLostError | null = null;
    if (answer.is !== "released") {
      // Nothing was released, so no message is sent, and we were waiting for it.
      this.#one.woken();
      loss = this.#owner.lossOf(this.#lease, this.#held, answer, commands.epoch !== this.#epoch);
    }
    cleanup.releases--;
    this.#lease.settle();
    this.#resolve(loss ? failing(loss) : undefined);
    if (cleanup.isEnding) cleanup.look();
  }

  failed(error: unknown): void {
    const { hold } = this.#lease;
    const { services, kind } = this.#owner;
    this.#one.woken();
    services.leave(kind, hold);
    services.cleanup.releases--;
    this.#lease.settle();
    this.#resolve(failing(unconfirmed(hold, error)));
    if (services.cleanup.isEnding) services.cleanup.look();
  }
}
