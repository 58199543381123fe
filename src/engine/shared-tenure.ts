import { type LockError, LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import type { LossReason } from "../api/wording.ts";
import { atTurnEnd, isTurnSpent } from "../core/event-loop-turn.ts";
import { type Applicant, ttlFor } from "../core/fits.ts";
import { Keeping } from "../core/keeping.ts";
import type { KeptEnd } from "../core/linger-learner.ts";
import type { Callback } from "../core/lock-kind.ts";
import type { Leaver } from "../core/shared-hold.ts";
import { tellAcquired, tellLost, tellReleased } from "../core/telling.ts";
import { SHARE_TIME } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import type { AttemptAnswer, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant, NEVER, now } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE } from "./lease/release-outcome.ts";
import type { Departure, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { isJoinable, isOpen, leaseFits, next, type Openness } from "./policies/shared.ts";
import { ReleaseCommand } from "./release-command.ts";
import { Tenure, type TenureHome } from "./tenure.ts";
import type { Waiter } from "./waiter.ts";

/**
 * One hold that readers of this process share, each with a lease of its own. A hold that comes
 * serves all readers that wait; more enter while it is known that no caller waits, or when Redis
 * says so again (`join`). Protects writers from readers that enter one after the other without
 * Redis knowing of any of them, and users from each other: a lease ends by itself, and the hold
 * when its last user has left.
 *
 * | while users are inside | true in Redis | leaves it by |
 * |---|---|---|
 * | inside a writer's lease | the hold is the writer's | the writer leaves, users stay → shared, once Redis is asked · none stays → ended |
 * | open | a hold of one unit; less than 25 ms ago no caller waited | its time is over → shared |
 * | shared | a hold of one unit | a join: no caller waits → open · one waits, or unknown → closed · it does not exist → ended, all users lost |
 * | closed | the same, and a caller waits | the last user leaves → ended |
 *
 * After the last user of an open hold, a turn of the event loop passes in which another one may
 * come. While a join is under way the hold stays, because its answer is about a reader that enters.
 */
export class SharedTenure extends Tenure implements Openness {
  /** The writer inside whose lease its users are; null: there is none, or it has left. */
  writer: SharedLease | null;
  asked: Instant;
  isClosed: boolean;
  isJoining = false;
  /**
   * The writer's tenure, while its users are part of the writer's call: it ends the hold, whether or
   * not one of them stays as long. Null: it has a hold of its own.
   */
  #outer: Tenure | null;
  readonly #lingers: boolean;
  /** How it stays here with no reader inside. Null: it never did. */
  keeping: Keeping | null = null;
  /** When a writer that does not wait was last told that a reader is inside. */
  #triedAt = Number.NEGATIVE_INFINITY;
  /** The last user, whose hold goes at the end of this turn of the event loop. */
  #leaving: Leaver | null = null;

  constructor(lock: TenureHome, hold: Hold, { writer, outer, lingers = false }: Beginning) {
    super(lock, hold);
    this.writer = writer ?? null;
    this.#outer = outer ?? null;
    this.#lingers = lingers;
    const isKnown = writer === undefined && hold.wantedAt === null;
    // RACE: the time counts from the sending: by the time the answer is read, a writer may have
    // waited for long.
    this.asked = isKnown ? hold.seen : NEVER;
    this.isClosed = writer === undefined && !isKnown;
  }

  readonly isOpen = true;
  readonly holder = null;

  get isIdle(): boolean {
    return this.keeping?.isIdle === true;
  }

  // ---- callers come

  protected give(one: Acquisition, waiter: Waiter): void {
    this.admit(one, waiter, this.borrow(waiter.terms, waiter), false);
    this.#serve(one, Number.POSITIVE_INFINITY);
    // The others continue with their own hold.
    one.start();
  }

  /** One more reader. */
  borrow(terms: Terms, caller: Caller): SharedLease {
    this.#stay();
    return this.enter(terms, caller);
  }

  /**
   * Admits the callers that the hold suits, up to the first writer of this process, and up to the
   * first caller that came later than `by`.
   */
  #serve(one: Acquisition, by: number): void {
    const { mono, wall } = now();
    const until = Math.min(by, this.lock.writerSince);
    // Listeners may make or abort calls meanwhile.
    for (const waiter of [...one.line]) {
      if (waiter.since > until) break;
      const isHere = waiter.listed && waiter.group === one && this.#isOurs;
      const { terms } = waiter;
      if (isHere && leaseFits(this.hold, terms, this.context.window, mono, wall) === "enough")
        this.admit(one, waiter, this.borrow(terms, waiter), false);
    }
  }

  takeIn({ terms }: Applicant, caller: Caller): SharedLease | null {
    const { mono, wall } = now();
    // RACE: a writer of this process may not be in Redis's queue yet, and the answer to a question
    // sent before it came says that no caller waits. So this does not rely on what is known of the
    // hold.
    if (isTurnSpent(mono) || this.lock.writerSince < Number.POSITIVE_INFINITY) return null;
    if (!this.#isOurs || next(this, terms, this.context.window, mono, wall) !== "now") return null;
    const { isIdle } = this;
    const lease = this.borrow(terms, caller);
    if (this.context.events.isUsed)
      tellAcquired(this.context.events, lease, clocks.mono.now() - mono, isIdle, isIdle);
    return lease;
  }

  lineFormed(): void {}

  get #isOurs(): boolean {
    return !this.isOver && !this.writer && !this.hold.isRevoked;
  }

  /** A writer of this process comes: an idle hold ends at once, without a message. */
  giveWay(): void {
    if (this.isIdle) this.#giveBack();
  }

  /**
   * Messages that say that a caller waits may have been missed: no reader enters without a round
   * trip.
   */
  askAgain(): void {
    this.asked = NEVER;
  }

  // ---- Redis is asked whether more may enter

  override joinedBy(one: Acquisition, first: Waiter): boolean {
    const { mono, wall } = now();
    const { window } = this.context;
    const { terms } = first;
    if (!this.#isOurs || !isJoinable(this)) return false;
    if (leaseFits(this.hold, terms, window, mono, wall) === "no") return false;
    one.askBeside();
    if (next(this, terms, window, mono, wall) === "now") this.#rest(one, first);
    else this.#join(one, first);
    return true;
  }

  /**
   * Without a round trip, after a turn of the event loop: readers that come and go must not
   * monopolise it.
   */
  #rest(one: Acquisition, first: Waiter): void {
    this.isJoining = true;
    this.#stay();
    atTurnEnd(() => {
      this.context.events.step(() => {
        this.isJoining = false;
        const { mono, wall } = now();
        // RACE: the event loop may have been blocked before that turn: the information from the
        // caller's arrival is too old by now.
        if (isJoinable(this) && !isOpen(this, mono, wall)) this.#join(one, first);
        else this.#asked(one, first, this.asked);
        this.#leaveUnused();
      });
    });
  }

  /** Asks whether a caller waits, and raises its end for a caller. */
  #join(one: Acquisition, head: Waiter): void {
    const { health, kind } = this.lock;
    // RACE: a join counts as a user. Otherwise its answer could come after the last reader's
    // unlock, and would be about a hold that was given back.
    this.isJoining = true;
    this.#stay();
    const sent = now();
    health.asked(sent.mono);
    // A hold that may stay is requested only for the window.
    const lease = this.#lingers ? this.ttlFor(head.terms) : head.terms.lease;
    this.hold.asks(lease, sent.mono);
    kind.sharing?.join({
      hold: this.hold,
      lease,
      answered: (answer) => {
        this.context.events.step(() => {
          this.#joined(sent, answer);
          health.answered();
          this.#asked(one, head, sent);
          this.#leaveUnused();
        });
      },
      failed: (error) => {
        this.context.events.step(() => {
          this.isJoining = false;
          this.isClosed = true;
          health.failed(error);
          this.#asked(one, head, sent);
          this.#leaveUnused();
        });
      },
    });
  }

  #joined(sent: Instant, answer: AttemptAnswer): void {
    this.isJoining = false;
    if (answer.is !== "owner") {
      this.lose("gone");
      return;
    }
    const { ttl, waits } = answer;
    // RACE: after the deadline the answer may be about a later grant of this hold, which a copy of
    // its acquire has queued again. "A caller waits" counts as a recall, which may have been lost.
    const isOurs = this.hold.renewed(sent, { ttl, waits });
    if (isOurs && !waits) this.asked = sent;
    else this.isClosed = true;
  }

  /** Redis was asked for this caller, and for all that came before that, or soon after. */
  #asked(one: Acquisition, head: Waiter, sent: Instant): void {
    if (isJoinable(this)) this.#serve(one, sent.mono + SHARE_TIME);
    const { first } = one.line;
    if (!first) one.stop();
    // Another answer would bring these callers no more than this one.
    else if (first === head || first.since <= sent.mono) one.startAnew(first);
    else one.start();
  }

  protected override ttlFor(terms: Terms): number {
    return ttlFor(terms, this.context.stays.window);
  }

  // ---- its users leave

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    // The writer's call reports a reader inside the writer's lease.
    if (lease.kind !== "write" && this.context.events.isUsed) tellReleased(this.context.events, lease, held);
    if (!this.#isUnused) {
      if (lease.isConfirmed) return this.confirm(lease, held);
      lease.settle();
      return DONE;
    }
    if (lease.isConfirmed) return this.release(lease, held, null);
    if (this.#keep(lease)) {
      lease.settle();
      return DONE;
    }
    if (!this.isShared || !isOpen(this, clocks.mono.now(), clocks.wall.now()))
      return this.release(lease, held, null);
    // Readers that come and go together leave in one turn of the event loop, and come back in the
    // same turn.
    return new Promise((resolve) => {
      this.#leaving = { lease, held, resolve };
      atTurnEnd(this.#turned);
    });
  }

  readonly #turned = (): void => {
    const leaving = this.#leaving;
    this.#leaving = null;
    leaving?.resolve(this.release(leaving.lease, leaving.held, null));
  };

  /** A caller is inside again, or will be. */
  #stay(): void {
    this.#settle();
    this.keeping?.taken(this.isJoining);
  }

  /** The last user that has left needs no release. */
  #settle(): void {
    const leaving = this.#leaving;
    this.#leaving = null;
    leaving?.lease.settle();
    leaving?.resolve();
  }

  /** A join was answered, or its user lost the hold: without a user the hold goes. */
  #leaveUnused(): void {
    if (!this.#isUnused || this.#leaving) return;
    // A loss that was reported is not reported again.
    if (this.isLost) this.leave();
    else this.#giveBack();
  }

  /** Has it neither a user nor a use? */
  get #isUnused(): boolean {
    const isUsed = this.users.size > 0 || this.isJoining || this.claiming || this.writer;
    return !isUsed && !this.isOver;
  }

  /** The writer has left, and no reader stays. */
  forget(): void {
    this.lock.ended(this);
  }

  override foundNone(by: Departure, held: number, answer: ReleaseAnswer): Promise<LockError | null> {
    return this.#outer?.foundNone(by, held, answer) ?? super.foundNone(by, held, answer);
  }

  /** The writer has left, and its readers stay: the hold is theirs. */
  outlive(lock: TenureHome): void {
    // The first local lock may have been dropped meanwhile, because no caller waited there.
    this.lock = lock;
    this.writer = null;
    this.#outer = null;
    this.lock.began(this);
  }

  // ---- it stays while idle

  #keep({ terms, kind }: SharedLease): boolean {
    const { hold, context } = this;
    const { stays } = context;
    const { learner } = stays;
    if (!this.#lingers || terms.linger === 0 || kind === "multi" || stays.isClosed) return false;
    if (this.isClosed || hold.wantedAt !== null || hold.isRevoked) return false;
    // A writer of this process would recall it at once.
    if (this.lock.hasWriter) return false;
    const mono = clocks.mono.now();
    // RACE: a writer that queued after one that does not wait, and that got "busy", has notified no
    // holder. So Redis must have reported later that no caller waits.
    if (this.asked.mono < this.#triedAt) return false;
    const maySpare = stays.maySpare(hold, mono);
    if (maySpare !== "yes") {
      this.#learn(maySpare === "too long" ? "not kept" : "given up");
      return false;
    }
    if (!learner.keeps(knownReads(hold.name), mono, this.keeping?.saved ?? 0)) return false;
    this.keeping ??= new Keeping(this, hold, learner);
    // It is not renewed while idle.
    this.keeping.begin(mono, Math.min(terms.linger, hold.endMono - mono));
    stays.keep(this.keeping);
    return true;
  }

  #learn(how: KeptEnd): void {
    const { stays } = this.context;
    stays.learner.ended(knownReads(this.hold.name), how, this.keeping?.saved ?? 0, clocks.mono.now(), true);
  }

  protected override end(by: Departure | null): void {
    const { keeping, hold, isIdle } = this;
    if (!this.isOver && this.#lingers) {
      const how = keeping?.end();
      if (hold.recalledAt !== null) this.#learn(isIdle ? "recalled" : "wanted");
      else if (how) this.#learn(how);
    }
    super.end(by);
  }

  /** It ends while idle, and its release is sent together with others. */
  takeLeave(): Callback<ReleaseAnswer> {
    const by = this.nobody();
    this.end(null);
    this.ending.sent();
    return new ReleaseCommand(this, by, 0, null, (failed) => failed?.catch(() => {}));
  }

  #giveBack(): void {
    // No caller waits for the answer; an event reports a loss.
    this.release(this.nobody(), 0, null).catch(() => {});
  }

  // ---- it is lost

  override renewed(by: SharedLease, sent: Instant, answer: RenewAnswer): void {
    if (answer.is !== "renewed" && !this.isOver && this.writer) this.writer.lose(answer.is);
    else super.renewed(by, sent, answer);
  }

  override lose(reason: LossReason, by: string | null = null): void {
    // After its end it has merely expired, and no caller has lost it.
    const wasAlone = !this.isOver && this.users.size === 0;
    const isNews = wasAlone && this.keeping && this.hold.left() > 0;
    this.isClosed = true;
    this.writer = null;
    const leaving = this.#leaving;
    this.#leaving = null;
    super.lose(reason, by);
    if (this.#isUnused) this.leave();
    if (leaving) this.lostBy(leaving, reason, by);
    // No caller is inside: readers may have lost it before they left, although their unlock
    // reported it as theirs.
    else if (isNews)
      tellLost(this.context.events, this.nobody(), 0, new LockLostError(this.hold.name, reason));
  }

  /** A user's time is over, or the hold's. */
  lost(lease: SharedLease, error: LockLostError): void {
    const held = this.leaves(lease);
    if (!this.#outer) tellLost(this.context.events, lease, held, error);
    if (this.#isUnused) this.leave();
  }

  protected override leave(): void {
    this.#settle();
    super.leave();
  }

  // ---- messages

  /**
   * A message says that a caller waits for the lock. RACE: the message is a hint that may be lost:
   * the answer of every join says the same, and without one no reader enters for long.
   */
  recalled(nonce: string | null, isQuestion: boolean): void {
    if (!this.#lingers) return;
    const { hold, isIdle, keeping, context } = this;
    if (nonce !== null && (isQuestion || !isIdle)) {
      // A writer that does not wait only asks. Otherwise each such question would close the
      // readers' hold.
      if (!isQuestion) this.#triedAt = clocks.mono.now();
      this.kind.sharing?.answer(hold.name, nonce, isIdle ? "idle" : "busy");
      return;
    }
    hold.recall(clocks.mono.now());
    this.isClosed = true;
    if (!isIdle || !keeping) return;
    context.stays.recalled(hold.name);
    sendAtTurnEnd(() => this.#giveBack());
    // Last: a listener may make a call, and would find a hold that is wanted.
    keeping.tellRecalled(context);
  }
}

/** How it begins: inside a writer's lease, or with its own hold. */
interface Beginning {
  readonly writer?: SharedLease;
  readonly outer?: Tenure;
  /** May it stay with this process when the last user has left? */
  readonly lingers?: boolean;
}

/** The name under which a client remembers whether caching the reads of a lock was worth it. */
export const knownReads = (name: string): string => `rw:${name}`;
