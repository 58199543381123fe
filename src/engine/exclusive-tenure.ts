import { LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { failing } from "../api/stacks.ts";
import type { LossReason } from "../api/wording.ts";
import { isTurnSpent } from "../core/event-loop-turn.ts";
import { type Applicant, ttlFor } from "../core/fits.ts";
import { isStillNext, next } from "../core/next.ts";
import { shrinkAgain } from "../core/release.ts";
import { lossOf, tellAcquired, tellLost, tellReleased } from "../core/telling.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import type { HolderFlag, RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { isEnding } from "../util/process-end.ts";
import type { Acquisition } from "./acquisition.ts";
import { newKeeping, type UsedTenure } from "./idle-tenures.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE, unconfirmed } from "./lease/release-outcome.ts";
import type { Departure, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { SharedTenure } from "./shared-tenure.ts";
import { Tenure, type TenureHome } from "./tenure.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A lock that one caller has at a time. Local hand-offs pass it between callers of this process, if
 * its kind allows that, and it may stay here idle for a while. Protects the other processes from a
 * hold that stays here too long: whatever goes wrong, it ends within the window.
 */
export class ExclusiveTenure extends Tenure implements UsedTenure {
  /**
   * Every later holder has a token above this one, a server's time in µs. 0: Redis has not said so
   * yet.
   */
  tokensUntil = 0;
  /** When its last renewal was sent, on the monotonic clock. */
  sentAt: number;
  /** Has a caller come in since then without a round trip? */
  isUsed = false;
  /** For a writer: the readers inside its lease. */
  readers: SharedTenure | null = null;
  /** The last token when that renewal was sent. */
  #sentToken: number;
  readonly #one: Acquisition;

  constructor(lock: TenureHome, one: Acquisition, hold: Hold) {
    super(lock, hold);
    this.#one = one;
    this.sentAt = hold.seen.mono;
    this.firstToken = hold.token;
    this.#sentToken = hold.token;
  }

  get isIdle(): boolean {
    return this.state === "idle";
  }

  get isOpen(): boolean {
    return this.state === "idle" || this.state === "leaving";
  }

  get holder(): SharedLease | null {
    for (const user of this.users) return user;
    return null;
  }

  protected override ttlFor(terms: Terms): number {
    return this.kind.hasStays ? ttlFor(terms, this.context.idle.window) : terms.lease;
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

  takeIn(comer: Applicant, caller: Caller): SharedLease | null {
    const mono = clocks.mono.now();
    if (!this.isOpen || isTurnSpent(mono)) return null;
    if (next(this, comer, this.lock, mono, clocks.wall.now()) !== "now") return null;
    this.reopen(false);
    this.context.idle.used(this);
    this.#countPass(caller.call, comer.terms);
    const lease = this.enter(comer.terms, caller);
    // RACE: first, because a listener may make a call, and the lock is busy by now.
    this.lock.look();
    if (this.context.events.isUsed)
      tellAcquired(this.context.events, lease, clocks.mono.now() - mono, true, true);
    return lease;
  }

  lineFormed(): void {
    this.resume();
  }

  /**
   * Hands the lock to the first caller in line: now, after a turn of the event loop, or after a
   * renewal. False: it must go to Redis.
   */
  #pass(): boolean {
    const waiter = this.#one.line.first;
    if (!waiter) return false;
    const { idle, window } = this.context;
    const mono = clocks.mono.now();
    const how = next(this, waiter, this.lock, mono, clocks.wall.now());
    if (how === "no") return false;
    this.reopen(how === "ask");
    if (how === "ask") {
      this.asks(mono);
      // For a caller that has just come this is its first command, with a first command's time
      // limit.
      const within = waiter.unanswered ? Math.min(window / 3, Math.max(1, waiter.until - mono)) : window / 3;
      void this.claim(this.#one, waiter, this.ttlFor(waiter.terms), true, within);
      return true;
    }
    // Other callers wait: this turn ends after a few more callers, before the hold's confirmation
    // is too old.
    const isEndless = this.kind.hasStays && this.hold.wantedAt === null;
    if (isEndless && isTurnSpent(mono)) idle.resumeLater(this);
    else {
      if (isEndless) idle.used(this);
      this.#passTo(waiter);
    }
    return true;
  }

  #passTo(waiter: Waiter): void {
    this.#countPass(waiter.call, waiter.terms);
    this.give(this.#one, waiter);
  }

  #countPass(call: number, terms: Terms): void {
    this.hold.passes++;
    this.hold.turns++;
    this.call = call;
    this.terms = terms;
  }

  protected override giveNext(_one: Acquisition, waiter: Waiter): void {
    if (waiter.settled) this.resume();
    else if (isStillNext(this, waiter, this.lock, clocks.mono.now())) this.#passTo(waiter);
    else {
      this.#one.line.putBack(waiter, true);
      this.#endAlone();
    }
  }

  /** No caller is inside: the event loop has turned, or another condition has changed. */
  resume(): void {
    if (this.isOver || this.users.size > 0 || this.claiming) return;
    if (this.hold.isRevoked) this.#lostAlone("revoked");
    // RACE: the process is ending: the next caller here would get the lock and never know.
    else if (isEnding) this.#release(this.nobody(), 0).catch(() => {});
    else if (!this.#pass()) this.#endAlone();
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
    if (this.#one.line.first) {
      if (!this.#pass()) return this.#end(lease, held);
    } else if (lease.terms.linger === 0 || !this.#keep(lease)) return this.#release(lease, held);
    lease.settle();
    return DONE;
  }

  /** No caller waits here. False: the lock must go to Redis. */
  #keep({ terms, kind, call }: SharedLease): boolean {
    const { hold } = this;
    const { linger, idle } = this.context;
    if (!this.kind.hasStays || kind === "multi" || idle.isClosed || hold.isRevoked) return false;
    const mono = clocks.mono.now();
    if (!this.mayStay(mono)) return false;
    this.call = call;
    this.terms = terms;
    // An answer that takes a lock also says whether the process is notified of recalls.
    const isGranted = hold.flag < 2;
    const saved = this.keeping?.saved ?? 0;
    if (hold.wantedAt === null && linger.keeps(hold.name, mono, saved, isGranted)) {
      // If it was granted by message, Redis must first be asked to notify this process: until then
      // no other process could recall it. RACE: a process that queued after a caller that does not
      // wait has notified no holder. So ask Redis whether another caller waits, unless it has
      // reported that later. A body of any length may come in between: under its own lease nothing
      // is renewed.
      const mustTell = isGranted || hold.seen.mono < this.triedAt;
      this.becomeIdle(mono, mono + terms.linger);
      if (mustTell && !this.isUsed) idle.tell(this);
    } else {
      if (!this.#mayLeaveLater(mono)) return false;
      this.keeping ??= newKeeping();
      this.state = "leaving";
      idle.leaveLater(this);
    }
    this.lock.look();
    return true;
  }

  /**
   * May it wait for a caller that takes it right again? Only while a waiting caller could still get
   * it.
   */
  #mayLeaveLater(mono: number): boolean {
    const comer = { terms: this.terms, passes: this.kind.localHandoffs };
    const { linger } = this.context;
    return (
      next(this, comer, this.lock, mono, clocks.wall.now()) === "now" && linger.comesBack(this.hold.name)
    );
  }

  /** No caller is inside, and none waits for the answer to the release. */
  #endAlone(): void {
    this.#end(this.nobody(), 0).catch(() => {});
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
    this.state = "ended";
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

  protected override learnEnd(wasIdle: boolean): void {
    const { keeping, hold } = this;
    if (!keeping) return;
    const isLapsed = wasIdle && clocks.mono.now() >= keeping.until;
    // If messages may have been missed, no process has reported that it wants the lock.
    const wanted = keeping.since > 0 ? "recalled" : "wanted";
    this.learn(hold.recalledAt !== null ? wanted : isLapsed ? "lapsed" : "given up");
  }

  override takeLeave(): void {
    super.takeLeave();
    this.#one.stop();
  }

  // ---- renewals

  /** A renewal is sent. Its answer is about the caller that is inside now. */
  asks(at: number): void {
    this.sentAt = at;
    this.#sentToken = this.hold.token + this.hold.passes;
  }

  override renewed(_hold: Hold, sent: Instant, answer: RenewAnswer, flag: HolderFlag | null = null): void {
    // A hold that has ended since is being removed from Redis.
    if (this.isOver) return;
    if (answer.is === "renewed") {
      this.applyRenewal(sent, answer, flag);
      // No caller is inside, and another process waits.
      if (this.state === "idle" && this.hold.wantedAt !== null) this.#endAlone();
      this.context.wanted.recalled(this.hold);
    } else this.lose(answer.is);
  }

  protected override applyRenewal(sent: Instant, answer: RenewAnswer, flag: HolderFlag | null): boolean {
    if (!super.applyRenewal(sent, answer, flag)) return false;
    this.tokensUntil = Math.max(this.tokensUntil, answer.at ?? 0);
    if (sent.mono >= this.sentAt) this.firstToken = this.#sentToken;
    // The answer says that the lock is ours, but not whether another caller waits.
    if (this.kind.hasStays && answer.waits === undefined) this.hold.want(clocks.mono.now());
    return true;
  }

  // ---- it is lost

  /**
   * RACE: another caller may be inside by now. The answer is about the hold, so that caller has
   * lost it. If a caller waits for its own renewal, the answer to that says the same.
   */
  override lose(reason: LossReason, by: string | null = null): void {
    if (this.users.size > 0) super.lose(reason, by);
    else if (!this.isOver && !this.claiming) this.#lostAlone(reason);
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

  /** No caller is inside: the lock may have been lost before earlier callers left. */
  #lostAlone(reason: LossReason): void {
    const nobody = this.nobody();
    this.leave(nobody);
    this.#one.start();
    tellLost(this.context.events, nobody, 0, new LockLostError(this.hold.name, reason));
  }

  // ---- messages

  recalled(nonce: string | null, isQuestion: boolean): void {
    const { hold, kind, context, state } = this;
    const isIdle = state === "idle";
    if (nonce !== null && (isQuestion || !isIdle)) {
      // A caller that does not wait only asks. Otherwise each of its questions would end the hold.
      kind.answer?.(hold.name, nonce, isIdle ? "idle" : "busy");
      if (!isQuestion) this.triedAt = clocks.mono.now();
      return;
    }
    hold.recall(clocks.mono.now());
    context.wanted.recalled(hold);
    if (!isIdle) return;
    context.idle.recalled(hold.name);
    sendAtTurnEnd(() => this.#endAlone());
    // Last: a listener may make a call, and would find a lock that is cached and wanted.
    this.tellRecalled();
  }
}
