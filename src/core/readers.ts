import type { LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import type { LossReason } from "../api/wording.ts";
import { SHARE_TIME } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import type { AttemptAnswer, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant, NEVER, now } from "../util/clock.ts";
import type { Ending } from "./ending.ts";
import { atTurnEnd, isTurnSpent } from "./event-loop-turn.ts";
import { type Applicant, ttlFor } from "./fits.ts";
import { Keeping } from "./keeping.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE } from "./lease/release-outcome.ts";
import { departed, type SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { Line } from "./line.ts";
import { type KeptEnd, knownReads } from "./linger-learner.ts";
import type { Callback, LockKind } from "./lock-kind.ts";
import { isJoinable, isOpen, leaseFits, next, type Openness } from "./reads.ts";
import type { RedisHealth } from "./redis-health.ts";
import { type Leaver, SharedHold, type SharedHoldHome } from "./shared-hold.ts";
import { tellAcquired, tellLost, tellLostAlone, tellReleased } from "./telling.ts";
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
export class Readers extends SharedHold implements Openness {
  /** The writer inside whose lease its users are; null: there is none, or it has left. */
  writer: SharedLease | null;
  asked: Instant;
  isClosed: boolean;
  isJoining = false;
  /** How it stays here with no reader inside. Null: it never did. */
  keeping: Keeping | null = null;
  declare protected readonly home: ReadersHome;
  /** Did Redis take it as one that may stay here, so that it tells of writers? */
  readonly #lingers: boolean;
  /** The reader that came in last. */
  #last: SharedLease | null = null;
  /** Are its users part of a writer's call? That ends the hold, whether or not one of them stays as long. */
  #isInside: boolean;

  /** `inside`: it begins inside a writer's lease. */
  constructor(home: ReadersHome, kind: LockKind, hold: Hold, inside: Inside | null) {
    super(kind, home, hold, inside?.ending);
    this.writer = inside?.writer ?? null;
    this.#isInside = inside !== null;
    this.#lingers = !inside && hold.flag === 2;
    const isKnown = !inside && hold.wantedAt === null;
    // RACE: the time counts from the sending: by the time the answer is read, a writer may have
    // waited for long.
    this.asked = isKnown ? hold.seen : NEVER;
    this.isClosed = !inside && !isKnown;
  }

  get isIdle(): boolean {
    return this.keeping?.isIdle === true;
  }

  // ---- callers come

  /** For this caller it was asked for. Those after it enter with it. */
  begin(line: Line, first: Waiter): void {
    this.admit(line, first);
    this.#serve(line, Number.POSITIVE_INFINITY);
  }

  /** One more reader. */
  take(terms: Terms, caller: Caller): SharedLease {
    this.#stay();
    this.#last = this.enter(terms, caller);
    return this.#last;
  }

  /**
   * Admits the callers that the hold suits, up to the first writer of this process, and up to the
   * first caller that came later than `by`.
   */
  #serve(line: Line, by: number): void {
    const { mono, wall } = now();
    const until = Math.min(by, this.home.writerSince);
    // Listeners may make or abort calls meanwhile.
    for (const caller of [...line]) {
      if (caller.since > until) break;
      const isHere = caller.list === line && this.#isOurs;
      if (isHere && leaseFits(this.hold, caller.terms, this.context.window, mono, wall) === "enough")
        this.admit(line, caller);
    }
  }

  takeIn({ terms }: Applicant, caller: Caller): SharedLease | null {
    const { mono, wall } = now();
    // RACE: a writer of this process may not be in Redis's queue yet, and the answer to a question
    // sent before it came says that no caller waits. So this does not rely on what is known of the
    // hold.
    if (isTurnSpent(mono) || this.home.writerSince < Number.POSITIVE_INFINITY) return null;
    if (!this.#isOurs || next(this, terms, this.context.window, mono, wall) !== "now") return null;
    const { isIdle } = this;
    const lease = this.take(terms, caller);
    if (this.context.events.isUsed)
      tellAcquired(this.context.events, lease, clocks.mono.now() - mono, isIdle, isIdle);
    return lease;
  }

  get #isOurs(): boolean {
    return !this.isOver && !this.writer && !this.hold.isRevoked;
  }

  /** A writer of this process comes: an idle hold ends at once, without a message. */
  giveWay(): void {
    if (this.isIdle) this.giveBack();
  }

  /**
   * No reader enters without a round trip. RACE: after a lost connection the server may have lost the
   * hold, and a writer may be inside. And it is not kept.
   */
  override mayBeWanted(at: number): void {
    this.asked = NEVER;
    this.hold.want(at);
  }

  // ---- Redis is asked whether more may enter

  /** This caller in line enters after a command about the hold, or a turn of the event loop. */
  joinedBy(place: Joining, first: Waiter): boolean {
    const { mono, wall } = now();
    const { window } = this.context;
    const { terms } = first;
    if (!this.#isOurs || !isJoinable(this)) return false;
    if (leaseFits(this.hold, terms, window, mono, wall) === "no") return false;
    place.asksBeside();
    if (next(this, terms, window, mono, wall) === "now") this.#rest(place, first);
    else this.#join(place, first);
    return true;
  }

  /**
   * Without a round trip, after a turn of the event loop: readers that come and go must not
   * monopolise it.
   */
  #rest(place: Joining, first: Waiter): void {
    this.isJoining = true;
    this.#stay();
    atTurnEnd(() => {
      this.context.events.step(() => {
        this.isJoining = false;
        const { mono, wall } = now();
        // RACE: the event loop may have been blocked before that turn: the information from the
        // caller's arrival is too old by now.
        if (isJoinable(this) && !isOpen(this, mono, wall)) this.#join(place, first);
        else this.#asked(place, first, this.asked, mono);
        this.#leaveUnused();
      });
    });
  }

  /** Asks whether a caller waits, and raises its end for a caller. */
  #join(place: Joining, head: Waiter): void {
    const { health } = this.home;
    // RACE: a join counts as a user. Otherwise its answer could come after the last reader's
    // unlock, and would be about a hold that was given back.
    this.isJoining = true;
    this.#stay();
    const sent = now();
    health.asked(sent.mono);
    // A hold that may stay is requested only for the window.
    const lease = this.#lingers ? ttlFor(head.terms, this.context.stays.window) : head.terms.lease;
    this.hold.asks(lease, sent.mono);
    this.kind.sharing?.join({
      hold: this.hold,
      lease,
      answered: (answer) => {
        this.context.events.step(() => {
          this.#joined(sent, answer);
          health.answered();
          this.#asked(place, head, sent);
          this.#leaveUnused();
        });
      },
      failed: (error) => {
        this.context.events.step(() => {
          this.isJoining = false;
          this.isClosed = true;
          health.failed(error);
          this.#asked(place, head, sent);
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

  /**
   * Redis was asked for this caller, and for all that came before that, or soon after; `by`: for those
   * that came before then.
   */
  #asked(place: Joining, head: Waiter, sent: Instant, by = sent.mono + SHARE_TIME): void {
    const { line } = place;
    if (isJoinable(this)) this.#serve(line, by);
    const { first } = line;
    // Another answer would bring these callers no more than this one.
    place.ask(first !== head && first !== null && first.since > sent.mono);
  }

  // ---- its users leave

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    // The writer's call reports a reader inside the writer's lease.
    if (lease.kind !== "write" && this.context.events.isUsed) tellReleased(this.context.events, lease, held);
    if (this.isUnused && (lease.isConfirmed || !this.#keep(lease))) {
      const isNow = lease.isConfirmed || !this.isShared;
      return this.answerTo(lease, held, isNow || !isOpen(this, clocks.mono.now(), clocks.wall.now()));
    }
    if (lease.isConfirmed) return this.confirm(lease, held);
    lease.settle();
    return DONE;
  }

  /** A caller is inside again, or will be. */
  #stay(): void {
    this.settle();
    this.keeping?.taken(this.isJoining);
  }

  /** A join was answered, or its user lost the hold: without a user the hold goes. */
  #leaveUnused(): void {
    if (!this.isUnused || this.leavers.length > 0) return;
    // A loss that was reported is not reported again.
    if (this.isLost) this.leave();
    else this.giveBack();
  }

  /** Has it neither a user nor a use? */
  protected override get isUnused(): boolean {
    return super.isUnused && !this.isJoining && !this.writer;
  }

  /** The writer has left, and its readers stay: the hold is theirs, with one unit. */
  outlive(writer: SharedLease, held: number, kind: LockKind): Promise<void> {
    this.writer = null;
    this.#isInside = false;
    this.home.began(this);
    return new Promise((resolve) => {
      this.leavers.push({ lease: writer, held, resolve });
      this.shrink(1, kind);
    });
  }

  // ---- it stays while idle

  #keep({ terms, kind }: SharedLease): boolean {
    const { hold, context } = this;
    const { stays } = context;
    const { learner } = stays;
    if (!this.#lingers || terms.linger === 0 || kind === "multi" || stays.isClosed) return false;
    if (this.isClosed || hold.wantedAt !== null || hold.isRevoked) return false;
    // A writer of this process would recall it at once.
    if (this.home.hasWriter) return false;
    const mono = clocks.mono.now();
    // RACE: a writer that queued after one that does not wait, and that got "busy", has notified no
    // holder. So Redis must have reported later that no caller waits.
    if (this.asked.mono < hold.triedAt) return false;
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

  protected override end(): void {
    const { keeping, hold, isIdle } = this;
    if (this.#lingers) {
      const how = keeping?.end();
      if (hold.recalledAt !== null) this.#learn(isIdle ? "recalled" : "wanted");
      else if (how) this.#learn(how);
    }
    super.end();
  }

  /** It ends while idle, and its release is sent together with others. */
  takeLeave(): Callback<ReleaseAnswer> {
    this.leavers.push(this.#nobody());
    return this.startShrink(0);
  }

  protected giveBack(): void {
    if (this.leavers.length === 0) this.leavers.push(this.#nobody());
    this.shrink(0);
  }

  /** No caller waits for the answer about the hold; an event reports a loss. */
  #nobody(): Leaver {
    if (!this.#last) throw new TypeError("no reader was inside");
    return { lease: departed(this.#last), held: 0, resolve: (failed) => failed?.catch(() => {}) };
  }

  // ---- it is lost

  override renewed(by: SharedLease, sent: Instant, answer: RenewAnswer): void {
    if (answer.is !== "renewed" && !this.isOver && this.writer) this.writer.lose(answer.is);
    else super.renewed(by, sent, answer);
  }

  override lose(reason: LossReason, by: string | null = null): void {
    // After its end it has merely expired, and no caller has lost it.
    const wasAlone = !this.isOver && this.users.size + this.leavers.length === 0;
    const isNews = wasAlone && !this.isLost && !this.#isInside && this.hold.left() > 0;
    this.isClosed = true;
    this.writer = null;
    super.lose(reason, by);
    // No caller is inside: readers may have lost it before they left, although their unlock
    // reported it as theirs.
    if (isNews) tellLostAlone(this, this.#nobody().lease, reason, by);
  }

  /** A user's time is over, or the hold's. */
  lost(lease: SharedLease, error: LockLostError): void {
    const held = this.leaves(lease);
    if (!this.#isInside) tellLost(this.context.events, lease, held, error);
    if (this.isUnused) this.leave();
  }

  // ---- messages

  /**
   * A message says that a caller waits for the lock. RACE: the message is a hint that may be lost:
   * the answer of every join says the same, and without one no reader enters for long.
   */
  override recalled(nonce: string | null, isQuestion: boolean): void {
    if (!this.#lingers) return;
    const { hold, isIdle, keeping, context } = this;
    if (nonce !== null && (isQuestion || !isIdle)) {
      // A writer that does not wait only asks. Otherwise each such question would close the
      // readers' hold.
      if (!isQuestion) hold.triedAt = clocks.mono.now();
      this.kind.sharing?.answer(hold.name, nonce, isIdle ? "idle" : "busy");
      return;
    }
    hold.recall(clocks.mono.now());
    this.isClosed = true;
    if (!isIdle || !keeping) return;
    context.stays.recalled(hold.name);
    sendAtTurnEnd(() => this.giveBack());
    // Last: a listener may make a call, and would find a hold that is wanted.
    keeping.tellRecalled(context);
  }
}

/** How it begins inside a writer's lease. `ending`: of the writer's hold. */
interface Inside {
  readonly writer: SharedLease;
  readonly ending: Ending | undefined;
}

/** The place of readers in line, which asks about this hold for its first caller. */
interface Joining {
  readonly line: Line;
  asksBeside(): void;
  /** It was answered. */
  ask(mayJoin: boolean): void;
}

/** What readers need of their resource. */
export interface ReadersHome extends SharedHoldHome {
  readonly health: RedisHealth;
  /** When the first writer of this process that waits has come; does one want to write at all? */
  readonly writerSince: number;
  readonly hasWriter: boolean;
  began(shared: SharedHold): void;
}
