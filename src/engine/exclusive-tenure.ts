import type { LockLostError } from "../api/errors.ts";
import { failing } from "../api/stacks.ts";
import { next, type Possession } from "../core/next.ts";
import { shrinkAgain } from "../core/release.ts";
import { lossOf, tellAcquired, tellLost, tellReleased } from "../core/telling.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { isEnding } from "../util/process-end.ts";
import type { Acquisition } from "./acquisition.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE, unconfirmed } from "./lease/release-outcome.ts";
import type { Departure, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { SharedTenure } from "./shared-tenure.ts";
import { Tenure, type TenureHome } from "./tenure.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A lock that one caller has at a time. Local hand-offs pass it between callers of this process, if
 * its kind allows that.
 */
export class ExclusiveTenure extends Tenure implements Possession {
  // Its kinds keep no lock.
  readonly isKept = false;
  readonly keeping = null;
  readonly tokensUntil = 0;
  readonly isOpen = false;
  /** For a writer: the readers inside its lease. */
  readers: SharedTenure | null = null;
  readonly #one: Acquisition;

  constructor(lock: TenureHome, one: Acquisition, hold: Hold) {
    super(lock, hold);
    this.#one = one;
    this.firstToken = hold.token;
  }

  get holder(): SharedLease | null {
    for (const user of this.users) return user;
    return null;
  }

  // ---- callers come

  protected give(one: Acquisition, waiter: Waiter): void {
    const lease = this.enter(waiter.terms, waiter);
    this.letIn(one, waiter, lease);
    const { line } = one;
    if (line.first) {
      line.tellBusy();
      if (line.first) this.lock.channel.listen();
    }
    // RACE: last, because a listener may take so long that the lease is over, or make a call: then
    // the lock is being asked for already, and "held" would be wrong.
    if (this.context.events.isUsed)
      tellAcquired(this.context.events, lease, clocks.mono.now() - waiter.since, this.hold.passes > 0, false);
  }

  takeIn(): null {
    return null;
  }

  lineFormed(): void {}

  /**
   * Hands the lock to the first caller in line: now, or after a renewal. False: it must go to Redis.
   */
  #pass(): boolean {
    const waiter = this.#one.line.first;
    if (!waiter) return false;
    const mono = clocks.mono.now();
    const how = next(this.hold, this, waiter, mono, clocks.wall.now());
    if (how === "no") return false;
    if (how === "now") this.#passTo(waiter);
    else {
      // For a caller that has just come this is its first command, with a first command's time
      // limit.
      const most = this.context.window / 3;
      const within = waiter.unanswered ? Math.min(most, Math.max(1, waiter.until - mono)) : most;
      void this.claim(this.#one, waiter, waiter.terms.lease, true, within);
    }
    return true;
  }

  #passTo(waiter: Waiter): void {
    this.hold.passes++;
    this.hold.turns++;
    this.give(this.#one, waiter);
  }

  protected override giveNext(_one: Acquisition, waiter: Waiter): void {
    this.firstToken = this.hold.token + this.hold.passes;
    if (!waiter.settled) this.#passTo(waiter);
    // RACE: the process is ending: the next caller here would get the lock and never know.
    else if (isEnding) this.#release(this.nobody(), 0).catch(() => {});
    else if (!this.#pass()) this.#end(this.nobody(), 0).catch(() => {});
  }

  /** A reader inside the lease of this writer. */
  readInside(writer: SharedLease, terms: Terms): SharedLease {
    if (this.readers?.writer !== writer)
      this.readers = new SharedTenure(this.lock.readers, this.hold, { writer, outer: this });
    return this.readers.borrow(terms, writer);
  }

  // ---- its user leaves

  vacated(lease: SharedLease): Promise<void> {
    const { readers } = this;
    if (readers && readers.users.size > 0) return this.#shrink(lease, readers);
    // Remove the readers' local lock too, which may have been made for this.
    readers?.forget();
    this.readers = null;
    const held = this.leaves(lease);
    if (this.context.events.isUsed) tellReleased(this.context.events, lease, held);
    // RACE: the process is ending: the next caller here would get the lock and never know.
    if (lease.isConfirmed || isEnding) return this.#release(lease, held);
    if (!this.#pass()) return this.#end(lease, held);
    lease.settle();
    return DONE;
  }

  /** Gives the lock to other processes. `held`: ms that it was held. */
  #end(by: Departure, held: number): Promise<void> {
    const { line } = this.#one;
    const waiter = line.waiting > 0 && this.kind.yield && this.lock.channel.isHeard ? line.first : null;
    return waiter ? this.#yield(by, held, waiter) : this.#release(by, held);
  }

  #release(by: Departure, held: number): Promise<void> {
    const one = this.#one;
    const { by: wake } = this.kind.wake;
    const released = this.release(by, held, one);
    if (!one.line.first) one.stop();
    // RACE: a command sent now would take the lock for a process that has ended.
    else if (isEnding) one.retry();
    // With messages, the message of our own release wakes us together with the others. The queue is
    // joined after the release.
    else if (wake === "time") one.backOffAfterRelease(clocks.mono.now() - this.hold.ownedAt);
    else if (wake === "message" && this.lock.channel.isHeard) one.parkForRelease();
    else one.start();
    return released;
  }

  async #yield(by: Departure, held: number, waiter: Waiter): Promise<void> {
    const { commands } = this.context;
    const { epoch } = commands;
    this.end(by);
    this.ending.sent();
    let loss: LockLostError | null;
    try {
      const answer = await this.#one.yield(this.hold, waiter);
      const isBroken = commands.epoch !== epoch;
      this.ending.answered({ answer: answer ?? { is: "released" }, isBroken });
      loss = answer && lossOf(this, by, held, answer, isBroken);
    } catch (error) {
      this.ending.answered({ answer: null, error });
      throw unconfirmed(this.hold, error, this.kind);
    } finally {
      by.settle();
    }
    if (loss) throw loss;
  }

  /**
   * A writer leaves while readers inside its lease stay: the hold becomes theirs. Only when the
   * last writer of the scope has left: calls that borrow its lock write too.
   */
  #shrink(lease: SharedLease, readers: SharedTenure): Promise<void> {
    const { hold, context, kind } = this;
    const { cleanup } = context;
    const held = this.leaves(lease);
    if (this.context.events.isUsed) tellReleased(this.context.events, lease, held);
    this.isOver = true;
    this.lock.ended(this);
    readers.outlive(this.lock.readers);
    cleanup.releases++;
    const done = (): void => {
      cleanup.releases--;
      lease.settle();
      if (cleanup.isEnding) cleanup.look();
    };
    const shrunk = new Promise<void>((resolve) => {
      kind.shrink?.(hold, 1, {
        answered: (answer) => {
          if (answer.is === "released") {
            done();
            resolve();
            return;
          }
          readers.lose("gone");
          void readers.foundNone(lease, held, answer).then((failure) => {
            done();
            resolve(failure ? failing(failure) : undefined);
          });
        },
        failed: (error) => {
          shrinkAgain(this, () => 1);
          done();
          resolve(failing(unconfirmed(hold, error, kind)));
        },
      });
    });
    // Writers of this process queue after it.
    this.#one.start();
    return shrunk;
  }

  // ---- it is lost

  override renewed(by: SharedLease, sent: Instant, answer: RenewAnswer): void {
    super.renewed(by, sent, answer);
    if (answer.is === "renewed") this.firstToken = by.token;
  }

  lost(lease: SharedLease, error: LockLostError): void {
    const { readers, context } = this;
    const held = clocks.mono.now() - lease.since;
    context.watchdog.leases.delete(lease);
    if (this.users.delete(lease)) {
      this.leave(lease);
      this.#one.start();
    } else context.leave(this.kind, this.hold);
    tellLost(this.context.events, lease, held, error);
    if (readers?.writer === lease) readers.lose(error.reason, error.by);
  }

  // ---- messages

  /** Its kinds ask no holder whether it is idle. */
  recalled(): void {}
}
