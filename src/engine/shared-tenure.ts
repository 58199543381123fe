import { LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import type { LossReason } from "../api/wording.ts";
import { SHARE_TIME } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import type { AttemptAnswer, HolderFlag, RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant, NEVER, now } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE } from "./lease/release-outcome.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { KeptEnd } from "./linger-policy.ts";
import { type Applicant, ttlFor } from "./policies/fits.ts";
import { isJoinable, isOpen, leaseFits, next, type Openness } from "./policies/shared.ts";
import type { Leaver } from "./release.ts";
import { Tenure, type TenureHome } from "./tenure.ts";
import { atTurnEnd, isTurnSpent } from "./turn.ts";
import type { Waiter } from "./waiter.ts";

/**
 * One hold that readers of this process share, each with a lease of its own. What is found serves
 * all that wait, and others come in while it is known that nobody waits, or when Redis says so
 * again (`join`). Protects writers from readers that come in one after the other without Redis
 * seeing any of them, and users from each other: a lease ends by itself, and the hold when it has
 * no user any more.
 *
 * | while users are inside | true in Redis | leaves it by |
 * |---|---|---|
 * | in a writer's time | the hold is the writer's | the writer leaves, users stay → shared, once Redis is asked · none stays → ended |
 * | open | a hold of one unit; nobody waited less than 25 ms ago | its time is over → shared |
 * | shared | a hold of one unit | a join: nobody waits → open · somebody waits, unknown → closed · nobody has it → ended, all users lost |
 * | closed | the same, and somebody waits | the last user leaves → ended |
 *
 * The last user of an open hold is followed by a turn of the event loop, in which another one may
 * come. While a join is under way the hold stays, because its answer is about a reader that comes
 * in.
 */
export class SharedTenure extends Tenure implements Openness {
  /** In whose time its users are; null: in nobody's, or that one has left. */
  writer: SharedLease | null;
  asked: Instant;
  isClosed: boolean;
  isJoining = false;
  /** Its users are part of a writer's call. */
  #isInside: boolean;
  readonly #lingers: boolean;
  /** The last user, whose hold goes at the end of this turn of the event loop. */
  #leaving: Leaver | null = null;

  constructor(lock: TenureHome, hold: Hold, { writer, lingers = false }: Beginning) {
    super(lock, hold);
    this.writer = writer ?? null;
    this.#isInside = writer !== undefined;
    this.#lingers = lingers;
    const isKnown = writer === undefined && hold.wantedAt === null;
    // RACE: it counts from the sending. When the answer is read a writer may have waited for long.
    this.asked = isKnown ? hold.seen : NEVER;
    this.isClosed = writer === undefined && !isKnown;
  }

  readonly isOpen = true;
  readonly holder = null;

  get isIdle(): boolean {
    return this.state === "idle";
  }

  // ---- callers come

  protected give(one: Acquisition, waiter: Waiter): void {
    this.admit(one, waiter, this.borrow(waiter.terms, waiter), false);
    this.#serve(one, Number.POSITIVE_INFINITY);
    // The others go on with a hold of their own.
    one.start();
  }

  /** One more reader. */
  borrow(terms: Terms, caller: Caller): SharedLease {
    this.#stay();
    return this.enter(terms, caller);
  }

  /**
   * Lets those in that the hold suits, up to the first writer of this process, and up to the first
   * that has come later than `by`.
   */
  #serve(one: Acquisition, by: number): void {
    const { mono, wall } = now();
    const until = Math.min(by, this.lock.writerSince);
    // A listener may call or abort while it is told.
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
    // RACE: a writer of this process may not be in the queue of Redis yet, and a question that was
    // sent before it came says that nobody waits: what is known of a hold is not enough.
    if (isTurnSpent(mono) || this.lock.writerSince < Number.POSITIVE_INFINITY) return null;
    if (!this.#isOurs || next(this, terms, this.context.window, mono, wall) !== "now") return null;
    const { isIdle } = this;
    const lease = this.borrow(terms, caller);
    if (this.context.events.isUsed) this.tellAcquired(lease, mono, isIdle, isIdle);
    return lease;
  }

  lineFormed(): void {}

  get #isOurs(): boolean {
    return !this.isOver && !this.writer && !this.hold.isRevoked;
  }

  /** A writer of this process comes: what nobody uses ends. It need not wait for a message. */
  giveWay(): void {
    if (this.isIdle) this.#giveBack();
  }

  /** Messages may have been missed that say that somebody waits: no reader comes in without asking. */
  askAgain(): void {
    this.asked = NEVER;
  }

  // ---- Redis is asked whether more may come in

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
   * Without asking, after a turn of the event loop: readers that come and go must not keep that to
   * themselves.
   */
  #rest(one: Acquisition, first: Waiter): void {
    this.isJoining = true;
    this.#stay();
    atTurnEnd(() => {
      this.isJoining = false;
      const { mono, wall } = now();
      // RACE: the event loop may have stood still instead of turning: what was known when the caller
      // came is too old by now.
      if (isJoinable(this) && !isOpen(this, mono, wall)) this.#join(one, first);
      else this.#asked(one, first, this.asked);
      this.#leaveUnused();
    });
  }

  /** Whether nobody waits; and raises its end for a caller. */
  #join(one: Acquisition, head: Waiter): void {
    const { health, kind } = this.lock;
    // RACE: a join is a user. Its answer may come after the unlock of the last reader, and would be
    // about a hold that was given back.
    this.isJoining = true;
    this.#stay();
    const sent = now();
    health.askedAt ||= sent.mono;
    // What may stay is asked for the window only.
    const lease = this.#lingers ? this.ttlFor(head.terms) : head.terms.lease;
    this.hold.asks(lease, sent.mono);
    kind.sharing?.join(this.hold, lease, {
      answered: (answer) => {
        this.#joined(sent, answer);
        health.answered();
        this.#asked(one, head, sent);
        this.#leaveUnused();
      },
      failed: (error) => {
        this.isJoining = false;
        this.isClosed = true;
        health.failed(error);
        this.#asked(one, head, sent);
        this.#leaveUnused();
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
    // its acquire has queued again. That somebody waits counts as a recall, which may have been
    // lost.
    const isOurs = this.hold.renewed(sent, { ttl, waits, isTold: false });
    if (isOurs && !waits) this.asked = sent;
    else this.isClosed = true;
  }

  /** Redis was asked for this caller, and for all that have come until then, or soon after. */
  #asked(one: Acquisition, head: Waiter, sent: Instant): void {
    if (isJoinable(this)) this.#serve(one, sent.mono + SHARE_TIME);
    const { first } = one.line;
    if (!first) one.stop();
    // What this answer has not brought, another one would not bring either.
    else if (first === head || first.since <= sent.mono) one.startAnew(first);
    else one.start();
  }

  protected override ttlFor(terms: Terms): number {
    return ttlFor(terms, this.context.idle.window);
  }

  // ---- its users leave

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    // Of a reader that came in a writer's time the writer's call has told.
    if (lease.kind !== "write" && this.context.events.isUsed) this.tellReleased(lease, held);
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
    // same one.
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

  /** Somebody is inside again, or will be. */
  #stay(): void {
    this.#settle();
    if (this.isIdle) this.reopen(this.isJoining);
  }

  /** The last user that has left needs no release of its own. */
  #settle(): void {
    const leaving = this.#leaving;
    this.#leaving = null;
    leaving?.lease.settle();
    leaving?.resolve();
  }

  /** A join was answered, or its user lost it: without a user the hold goes. */
  #leaveUnused(): void {
    if (this.#isUnused && !this.#leaving) this.leave();
  }

  /** Has nobody any use for it? */
  get #isUnused(): boolean {
    const isUsed = this.users.size > 0 || this.isJoining || this.claiming || this.writer;
    return !isUsed && !this.isOver;
  }

  /** The writer has left, and no reader stays. */
  forget(): void {
    this.lock.ended(this);
  }

  /** The writer has left, and its readers stay: it is theirs. */
  outlive(lock: TenureHome): void {
    // Its first one may have been forgotten meanwhile, because no caller waited there.
    this.lock = lock;
    this.writer = null;
    this.#isInside = false;
    this.lock.began(this);
  }

  // ---- nobody is inside, and it stays

  protected override get known(): string {
    return knownReads(this.hold.name);
  }

  #keep({ terms, kind }: SharedLease): boolean {
    const { hold, context } = this;
    const { linger, idle } = context;
    if (!this.#lingers || terms.linger === 0 || kind === "multi" || idle.isClosed) return false;
    if (this.isClosed || hold.wantedAt !== null || hold.isRevoked) return false;
    // It would be kept only to be recalled by a writer of this process.
    if (this.lock.hasWriter) return false;
    const mono = clocks.mono.now();
    // RACE: a writer that queued after one that would not wait, and was told "busy", has told nobody
    // so: then Redis must have said of a later moment that nobody waits.
    if (this.asked.mono < this.triedAt) return false;
    if (!this.mayStay(mono)) return false;
    if (!linger.keeps(this.known, mono, this.keeping?.saved ?? 0)) return false;
    // It is not renewed with nobody inside.
    this.becomeIdle(mono, Math.min(mono + terms.linger, hold.endMono));
    return true;
  }

  protected override learn(how: KeptEnd): void {
    const { linger } = this.context;
    linger.ended(this.known, how, this.keeping?.saved ?? 0, clocks.mono.now(), true);
  }

  protected override learnEnd(wasIdle: boolean): void {
    if (!this.#lingers) return;
    const { keeping, hold } = this;
    const isLapsed = wasIdle && clocks.mono.now() >= (keeping?.until ?? 0);
    if (hold.recalledAt !== null) this.learn(wasIdle ? "recalled" : "wanted");
    else if (keeping) this.learn(isLapsed ? "lapsed" : "given up");
  }

  #giveBack(): void {
    // Nobody waits for what becomes of it; a loss is told by an event.
    this.release(this.nobody(), 0, null).catch(() => {});
  }

  // ---- it is lost

  override renewed(hold: Hold, sent: Instant, answer: RenewAnswer, flag: HolderFlag | null = null): void {
    if (answer.is !== "renewed" && !this.isOver && this.writer) this.writer.lose(answer.is);
    else super.renewed(hold, sent, answer, flag);
  }

  override lose(reason: LossReason, by: string | null = null): void {
    // After its end it has just run out, which is nobody's loss.
    const wasAlone = !this.isOver && this.users.size === 0;
    const isNews = wasAlone && this.wasKept && this.hold.left() > 0;
    this.isClosed = true;
    this.writer = null;
    super.lose(reason, by);
    if (this.#isUnused) this.leave();
    // Nobody is inside: readers that were may have lost it before they left, and were told at their
    // unlock that it was theirs.
    if (isNews) this.toldLost(this.nobody(), 0, new LockLostError(this.hold.name, reason));
  }

  /** A user's time is over, or that of the hold. */
  lost(lease: SharedLease, error: LockLostError): void {
    const held = this.leaves(lease);
    if (!this.#isInside) this.toldLost(lease, held, error);
    if (this.#isUnused) this.leave();
  }

  protected override leave(): void {
    this.#settle();
    super.leave();
  }

  // ---- messages

  /**
   * Somebody waits for the lock, and says so. RACE: it is a hint, which may be lost: the answer of
   * every join says the same, and without one no reader comes in for long.
   */
  recalled(_id: string, nonce: string | null, isQuestion: boolean): void {
    if (!this.#lingers) return;
    const { hold, isIdle, context } = this;
    if (nonce !== null && (isQuestion || !isIdle)) {
      // A writer that does not wait wants to know, and no more: it would divide the readers each
      // time.
      if (!isQuestion) this.triedAt = clocks.mono.now();
      this.kind.sharing?.answer(hold.name, nonce, isIdle ? "idle" : "busy");
      return;
    }
    hold.recall(clocks.mono.now());
    this.isClosed = true;
    if (!isIdle) return;
    context.idle.recalled(hold.name);
    sendAtTurnEnd(() => this.#giveBack());
    // Last: a listener may call, and would find what is wanted.
    this.tellRecalled();
  }
}

/** How it begins: in a writer's time, or with a hold of its own. */
interface Beginning {
  readonly writer?: SharedLease;
  /** May it stay with this process when the last user has left? */
  readonly lingers?: boolean;
}

/** By what a client remembers whether the reads of a lock were worth keeping. */
export const knownReads = (name: string): string => `rw:${name}`;
