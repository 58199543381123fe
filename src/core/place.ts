import type { LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { type LossReason, nounOf } from "../api/wording.ts";
import { CLOCK_DRIFT, FIRST_REPLY, KEEPER_REPLY, LEASE_TIME } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import {
  type AttemptAnswer,
  RELEASED,
  type RenewAnswer,
  unavailable,
  type YieldAnswer,
} from "../redis/replies.ts";
import { clocks, type Instant } from "../util/clock.ts";
import type { Linked } from "../util/linked-list.ts";
import { isEnding } from "../util/process-end.ts";
import { CallTimer, isSet } from "../util/timers.ts";
import { Attempt } from "./attempt.ts";
import { Claim } from "./claim.ts";
import type { Ending } from "./ending.ts";
import { atTurnEnd, isTurnSpent } from "./event-loop-turn.ts";
import { type Applicant, fits } from "./fits.ts";
import { Keeping } from "./keeping.ts";
import type { Grant, Hold } from "./lease/hold.ts";
import { DONE, refused } from "./lease/release-outcome.ts";
import { type Departure, departed, type LeaseOwner, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { type LeaseTooShort, tryAgain } from "./lease-too-short.ts";
import { Line } from "./line.ts";
import { knownReads } from "./linger-learner.ts";
import { BLOCKED, type LockKind, type Run } from "./lock-kind.ts";
import { isStillNext, next, type Possession, reserved } from "./next.ts";
import { isFor, runFrom, suits } from "./permits.ts";
import type { Expecting, Port } from "./port.ts";
import type { RecheckGroup } from "./recheck-group.ts";
import type { RedisHealth } from "./redis-health.ts";
import { Release } from "./release.ts";
import { backOff, nextTry, sleep } from "./schedule.ts";
import {
  APART,
  ASKING,
  CLAIMING,
  IDLE,
  KEPT,
  LEAVING,
  OWNED,
  PARKED,
  RESTING,
  type State,
  SUBSCRIBING,
} from "./states.ts";
import type { UsedStay } from "./stays.ts";
import { tellAcquired, tellLost, tellLostAlone, tellReleased } from "./telling.ts";
import type { Waiter } from "./waiter.ts";

/**
 * One hold in Redis at a time, from asked for to given back, and the line of callers that it serves.
 * Its states and what each does on an event: `states.ts`.
 *
 * After every change of ownership `ask` decides for the callers that are left. An answer that is not
 * awaited changes no state. A grant by message ends the waiting for the answer under way, which is
 * then about the present hold; any other hold that such an answer brings is left (R3).
 */
export class Place implements Expecting, LeaseOwner, Possession, UsedStay, Linked {
  list: object | null = null;
  next: this | null = null;
  previous: this | null = null;
  readonly kind: LockKind;
  readonly context: Port;
  readonly resource: Home;
  readonly line: Line;
  state: State = IDLE;
  /** The hold that asks, waits, or owns the lock. */
  hold: Hold | null = null;
  /** The command whose answer is awaited. */
  attempt: Attempt | null = null;
  /** The caller that has the lock; the one that has it, or had it last; the renewal for the next one. */
  holder: SharedLease | null = null;
  last: SharedLease | null = null;
  claim: Claim | null = null;
  /** How the hold stays here with no caller inside. Null: it never did. */
  keeping: Keeping | null = null;
  /** Position in the queue, as Redis last reported it. */
  position: number | null = null;
  /** For permits: those that its hold is asked for, and how many it got. Null: a hold has one unit. */
  run: Run | null = null;
  #units = 1;
  /** Tries of its first caller that got the lock after the caller's lease was over. */
  leaseTooShort: LeaseTooShort | null = null;
  /** Its time: of its next re-check or try. Only `Timers` writes these. */
  at = Number.POSITIVE_INFINITY;
  index = -1;
  /** The first token for which Redis has not yet confirmed that the lock was ours. Null: the hold's. */
  #firstToken: number | null = null;
  /** Every later holder has a token above this one. 0: Redis has not said so yet. */
  tokensUntil = 0;
  isUsed = false;
  /** At the end of a turn of the event loop. Made when it first rests. */
  #turned: (() => void) | null = null;
  /** Upper bound of the next sleep; may be set while a re-check is under way. */
  #latest: number | null = null;

  constructor(resource: Home, kind: LockKind) {
    this.kind = kind;
    this.context = resource.port;
    this.resource = resource;
    this.line = new Line(resource.name, resource.port);
  }

  get name(): string {
    return this.resource.name;
  }

  get health(): RedisHealth {
    return this.resource.health;
  }

  // ---- callers

  join(caller: Waiter): void {
    const { line, state } = this;
    if (!line.first && state === IDLE) this.resource.came(this);
    // It shares the question to a holder that may be idle.
    if (state === PARKED && caller.wait === 0 && line.isAskingOnly) {
      caller.isAsking = true;
      caller.wait = clocks.mono.now() - caller.since + KEEPER_REPLY;
    }
    line.add(caller);
    if (caller.waits && this.isKnown(caller)) line.park(caller);
    else line.awaitAnswer(caller, caller.since);
    state.came(this, caller);
  }

  /** A caller that waits needs no answer where others of this process are queued, or have the lock. */
  protected isKnown(caller: Waiter): boolean {
    return this.state === PARKED || this.isHeldHere(caller.since);
  }

  /** Does another caller here have the lock? */
  isHeldHere(mono?: number): boolean {
    return this.holder !== null && this.holder.left(mono) > 0;
  }

  /** Its time is over: for its wait, or for the answer to its command. */
  late(caller: Waiter): void {
    this.context.events.step(() => this.#late(caller));
  }

  #late(caller: Waiter): void {
    const { line, health, name } = this;
    const { commands, timers } = this.context;
    const mono = clocks.mono.now();
    const inTime = commands.heldUntil + FIRST_REPLY;
    // RACE: its command left this process late, because the event loop was blocked right after the
    // call. Only once: other commands of this process may be late repeatedly.
    if (caller.isUnanswered && commands.heldUntil >= caller.since && !caller.isSentLate && mono < inTime) {
      caller.isSentLate = true;
      timers.set(caller, inTime);
      return;
    }
    if (this.leaseTooShort?.waiter === caller) line.refuse(caller, this.leaseTooShort.refusal(name));
    else if (caller.isUnanswered || health.isDoubtful) {
      const cause = health.failure ?? commands.trouble();
      line.refuse(caller, unavailable(name, "", cause, nounOf(this.kind)));
    } else if (this.isUnasked(caller, mono)) {
      line.awaitAnswer(caller, mono, FIRST_REPLY);
      this.state.came(this, caller);
      return;
    } else line.refuse(caller, null);
    this.state.left(this);
  }

  /**
   * RACE: Redis has not answered since this caller came, perhaps because it hangs. So one more
   * question, although its wait is over.
   */
  protected isUnasked({ since }: Waiter, mono: number): boolean {
    return this.health.saidAt < since && !this.isHeldHere(mono);
  }

  /** Its signal aborts, or its client closes. */
  leave(caller: Waiter, reason: unknown): void {
    this.context.events.step(() => {
      this.line.refuse(caller, reason);
      this.state.left(this);
    });
  }

  /** Refuses all its callers. */
  leaveAll(reason: () => unknown): void {
    this.context.events.step(() => {
      this.claim?.caller.aborted(reason());
      this.line.refuseAll(reason);
      this.state.left(this);
    });
  }

  // ---- it asks

  /** For the callers in line: with a new hold (R1), or later. `mayJoin`: or about one of readers here. */
  ask(mayJoin = true): void {
    const { line, resource, context, kind, name } = this;
    const { first } = line;
    if (!first) {
      this.stop();
      return;
    }
    if (mayJoin && kind.policy === "shared" && resource.joins(this, first)) return;
    const waits = line.waiting > 0;
    const channel = waits || kind.hasStays ? resource.look() : UNHEARD;
    const mode = waits && (channel.isHeard || resource.isUnheard) ? "queue" : "try";
    if (waits && !resource.mayAsk(this, mode)) {
      this.subscribe(first);
      return;
    }
    if (kind.policy === "pooled") this.run = runFrom(first, context.window);
    const hold = context.newHold(kind, name, this, first.terms.label);
    // A hold that may stay has the window, in which Redis may have been too slow to answer.
    if (first.terms.linger > 0 && !this.leaseTooShort) hold.lingers = this.#mayLinger(first);
    this.to(ASKING, hold);
    this.send(this.attemptFor(mode, hold, first, channel, null));
    if (!waits || channel.isHeard) return;
    if (mode === "queue") resource.listen();
    else context.inbox.prepare(resource.channel);
  }

  /** Will the hold stay after this caller? It is asked for a shorter time then. */
  #mayLinger({ terms, kind: by }: Waiter): boolean {
    const { name, kind, resource } = this;
    const { stays } = this.context;
    const { learner } = stays;
    // Will Redis notify the holder of waiters?
    const isRead = kind.policy === "shared";
    const isTold = isRead ? resource.writerSince === Number.POSITIVE_INFINITY : kind.hasStays;
    if (!isTold || !stays.mayLinger(name, terms, by)) return false;
    const mono = clocks.mono.now();
    return isRead
      ? learner.keeps(knownReads(name), mono)
      : learner.keeps(name, mono) || learner.comesBack(name);
  }

  protected send(attempt: Attempt): void {
    this.kind.attempt(attempt);
  }

  /** A command about a hold of readers of this process asks for its callers. */
  asksBeside(): void {
    this.to(ASKING);
  }

  /** The next command whose answer is awaited. */
  protected attemptFor(
    mode: Attempt["mode"],
    hold: Hold,
    first: Waiter,
    channel: Channel,
    release: Release | null,
  ): Attempt {
    const { resource, health } = this;
    const attempt = new Attempt(this, hold, mode, first, channel, release, this.#nonceFor(mode, first, hold));
    this.attempt = attempt;
    if (attempt.isFirst) resource.firstTries++;
    health.asked(attempt.sent.mono);
    return attempt;
  }

  /**
   * Callers that do not wait ask a possibly idle holder whether it is in use, and are told "busy" at
   * once when it is. RACE: each of their places in the queue would end the holder's hold otherwise.
   */
  #nonceFor(mode: Attempt["mode"], { batchedTry }: Waiter, hold: Hold): string | null {
    const { kind, line, context } = this;
    const { holderQueries, inbox, timers, events } = context;
    if (mode === "try") return kind.answer && batchedTry ? holderQueries.noReplyNonce : null;
    // Writers ask readers.
    const isAsked = kind.answer !== undefined || kind.mode === "write";
    if (mode !== "queue" || !isAsked || !line.isAskingOnly) return null;
    const nonce = holderQueries.nonce();
    const answered = (): void =>
      events.step(() => {
        line.refuseAsking(hold.sent.mono);
        // RACE: a caller that came after the question: the holder may have given the lock back since.
        const isNewer = line.first !== null && line.isAskingOnly;
        if (isNewer && this.state === PARKED && this.hold === hold) this.#queueAnew(hold);
        else this.state.left(this);
      });
    inbox.asked.set(nonce, answered);
    timers.set(new CallTimer(() => inbox.asked.delete(nonce)), clocks.mono.now() + 2 * FIRST_REPLY);
    return nonce;
  }

  /** It asks when the subscription is acknowledged, or from time to time: that may take long. */
  subscribe({ since }: Waiter): void {
    this.to(SUBSCRIBING);
    this.sleepUntil(nextTry(since));
    this.resource.listen();
  }

  /** Asks again at a time. */
  rest(at: number): void {
    this.to(APART);
    this.sleepUntil(at);
  }

  /** A command failed: asks again after a pause, for the callers that still wait. */
  retry(failures = this.health.failures): void {
    if (this.line.first) this.rest(clocks.mono.now() + backOff(failures));
    else this.stop();
  }

  /** Asks Redis whether the hold is still queued, which keeps all entries of this client. */
  recheck(): void {
    const { hold, attempt, context, resource, kind } = this;
    if (!hold || attempt || !this.line.first) return;
    context.timers.clear(this);
    context.selfWait.look(resource, this.line.first);
    const { first } = this.line;
    if (first) kind.attempt(this.attemptFor("again", hold, first, resource.look(), null));
  }

  /**
   * For permits: another caller is first. RACE: its place asks for the former caller's permits, and
   * never changes. If those are more than the present caller wants, the place could wait forever; if
   * fewer, the permits would be given up when they come. So take a new place, after all others: at
   * most once per caller, because the first one stays first until it has its permits, or leaves.
   */
  reconsider(): void {
    const { run, hold, line } = this;
    if (run && hold && line.first && !isFor(run, line.first.terms)) this.#queueAnew(hold);
  }

  /** Its entry may stay until it expires, and be granted at its end. */
  #queueAnew(hold: Hold): void {
    hold.asks(LEASE_TIME);
    this.drop();
    this.ask();
  }

  /** Others of this process have given its callers what they wanted. */
  served(): void {
    // They may come back at once, and would find that this process has given up its place.
    if (this.line.first) this.state.left(this);
    else atTurnEnd(() => this.context.events.step(() => this.state.left(this)));
  }

  /** Anything left of its hold in Redis must go. */
  drop(): void {
    this.#learn();
    if (this.hold) this.withdraw(this.hold);
    this.hold = null;
  }

  protected withdraw(hold: Hold): void {
    this.context.leave(this.kind, hold);
  }

  stop(): void {
    this.attempt = null;
    if (this.hold) this.context.inbox.forget(this.hold);
    this.to(IDLE);
    this.resource.gone(this);
  }

  /** `isDue`: the next place of this client must re-check at once in its stead. */
  to(state: State, hold: Hold | null = null, isDue = false): void {
    const { resource, context } = this;
    const wasParked = this.state === PARKED;
    // RACE: a re-check that is under way now finds no own entry, and so keeps none of the others.
    const dueAt =
      isDue || this.attempt ? 0 : isSet(this) ? this.at : (this.#latest ?? Number.POSITIVE_INFINITY);
    if (this.isSubscribing) resource.subscribing--;
    if (state === SUBSCRIBING) resource.subscribing++;
    context.timers.clear(this);
    this.#latest = null;
    this.attempt = null;
    this.state = state;
    this.hold = hold;
    if (wasParked) resource.places.remove(this, dueAt);
  }

  // ---- its time

  /**
   * A hold that receives no messages re-checks as if it were first in the queue: its grant must be
   * found within the window.
   */
  sleepFor(attempt: Attempt, ttl: number): void {
    const { isHeard } = this.resource;
    this.sleep(sleep(ttl, isHeard ? this.position : 0, attempt.mode === "again"));
    // RACE: a grant published before the acknowledgement of the subscription reached no process.
    if (!attempt.isHeard && isHeard) this.lookAgain();
  }

  /** Of a client's places at a lock only the first one re-checks, for all. */
  sleep(ms: number): void {
    if (!this.resource.places.isFirst(this)) return;
    this.sleepUntil(Math.min(clocks.mono.now() + ms, this.#latest ?? Number.POSITIVE_INFINITY));
    this.#latest = null;
  }

  sleepUntil(at: number): void {
    this.context.timers.set(this, at);
  }

  /** Re-checks at this time at the latest. */
  lookBefore(at: number): void {
    this.#latest = Math.min(this.#latest ?? at, at);
    if (this.state === PARKED && !this.attempt && !(isSet(this) && this.at <= at)) this.sleep(LEASE_TIME);
  }

  /** A message may have been missed, or the connection is back. */
  lookAgain(): void {
    // RACE: a message published meanwhile may be newer than the answer to the command under way.
    if (this.attempt) this.attempt.isHeard = false;
    this.state.gap(this);
  }

  ring(): void {
    const { health } = this;
    const { commands } = this.context;
    // While the connection is away, more commands would only pile up in it. When it is back, every
    // place looks again.
    if (commands.isAway) {
      health.failed(commands.trouble());
      this.sleepUntil(clocks.mono.now() + backOff(health.failures));
    } else this.lookAgain();
  }

  // ---- answers

  answered(attempt: Attempt, answer: AttemptAnswer | YieldAnswer): void {
    const { events } = this.context;
    const isOuter = events.begin();
    try {
      this.#answered(attempt, answer);
    } finally {
      events.end(isOuter);
    }
  }

  #answered(attempt: Attempt, answer: AttemptAnswer | YieldAnswer): void {
    const { health, resource, context } = this;
    const { hold, sent, release } = attempt;
    // About the hold that was to be yielded: nothing was queued.
    const isOld = !("at" in answer);
    release?.answered(isOld ? answer : RELEASED);
    const isAwaited = this.attempt === attempt;
    health.said(sent.mono);
    if (!isAwaited) {
      // RACE: a grant was read before this answer: then the grant counts. RACE: or the hold has
      // ended, and a copy of the command that Redis ran after that took the lock once more. RACE: its
      // release is under way, and the server does not know that script: the release would be sent
      // again, after this withdrawal, and report a loss.
      if (answer.is === "owner" && !context.isNamed(hold.id)) this.#leaveIfOver(hold);
    } else if (isOld) {
      context.inbox.forget(hold);
      this.attempt = null;
      this.ask();
    } else {
      this.attempt = null;
      if (answer.is === "owner") this.#owner(answer, attempt);
      else if (answer.is === "held") {
        hold.answered(sent, answer.at);
        if (answer.token !== undefined) this.line.saw(answer.token, sent.mono);
        if (attempt.isReady) this.#anew(hold);
        else this.state.held(this, answer, attempt);
      } else if (answer.is === "kept") {
        const age = ((answer.at - answer.kept.at) / 1_000) * (1 + CLOCK_DRIFT);
        // RACE: the server's clock was set back since then: its age is unknown.
        this.line.serve(answer.kept, sent.mono, age < 0 ? Number.NEGATIVE_INFINITY : sent.mono - age);
        this.#anew(hold);
      } else if (answer.is === "blocked") this.#refused(attempt, BLOCKED);
      else if (answer.is === "refused") this.#refused(attempt, answer.error);
      else if (answer.is === "gone" || answer.is === "stale") this.state.unplaced(this, answer.is);
    }
    if (attempt.isFirst) resource.firstTried();
  }

  /** Nothing of the hold is left in Redis: callers that are left ask with a new one. */
  #anew(hold: Hold): void {
    this.context.inbox.forget(hold);
    this.ask();
  }

  /** Redis did nothing, for a reason that concerns this caller only. */
  #refused({ hold, head }: Attempt, error: Error): void {
    const { context, kind, line } = this;
    // RACE: an earlier copy of a queueing command may have run while the lock was still available.
    if (error === BLOCKED) context.inbox.forget(hold);
    else context.leave(kind, hold);
    line.refuse(head, error);
    line.awaitAgain();
    this.ask();
  }

  failed(attempt: Attempt, error: unknown): void {
    this.context.events.step(() => {
      const isAwaited = this.attempt === attempt;
      this.health.failed(error);
      // RACE: its new hold was granted before its answer was lost. So Redis has run it.
      if (isAwaited) attempt.release?.failed(error);
      else attempt.release?.answered(RELEASED);
      if (!isAwaited) this.#leaveIfOver(attempt.hold);
      else {
        this.attempt = null;
        this.state.failed(this, error);
      }
      if (attempt.isFirst) this.resource.firstTried();
    });
  }

  /** The last copy's effect is unknown. RACE: the hold may be in use here since its grant was read. */
  #leaveIfOver(hold: Hold): void {
    const { context, kind } = this;
    if (!context.inbox.isExpected(hold)) context.leave(kind, hold);
  }

  // ---- messages about its hold

  granted(grant: Grant): void {
    // A grant that no script writes is ignored; one that repeats an answer, too.
    if (!this.hold?.fits(grant)) return;
    const { events } = this.context;
    const isOuter = events.begin();
    try {
      this.state.granted(this, grant);
    } finally {
      events.end(isOuter);
    }
  }

  /** Its hold is over, because what its callers wait for is there. */
  ready(): void {
    const { attempt, hold } = this;
    // RACE: the answer that the hold is queued is read after this message.
    if (attempt) attempt.isReady = true;
    else if (hold && this.state === PARKED) this.context.events.step(() => this.#anew(hold));
  }

  /**
   * Redis has given it the lock, and perhaps remembers a result by now: it asks once more before a
   * caller runs.
   */
  askAgain(): void {
    const { hold } = this;
    const { first } = this.line;
    if (!hold || !first) {
      this.drop();
      this.stop();
      return;
    }
    this.to(ASKING, hold);
    this.send(this.attemptFor("grant", hold, first, this.resource.look(), null));
  }

  revoked(by: string | null): void {
    if (this.hold) this.hold.isRevoked = true;
    if (this.claim) this.claim.revokedBy = by;
    this.lose("revoked", by);
  }

  /**
   * Another process wants the lock. RACE: this can be read before the answer to the command that took
   * the lock, and that answer says that no process waits. So it counts for a hold in any state.
   */
  recalled(nonce: string | null, isQuestion: boolean): void {
    const { hold, kind, name, context, isOurs, isKept, keeping } = this;
    if (!hold) return;
    const mono = clocks.mono.now();
    if (nonce !== null && (isQuestion || (isOurs && !isKept))) {
      // A caller that does not wait only asks. Otherwise each of its questions would end the hold.
      const asked = kind.policy === "shared" ? kind.sharing : kind;
      if (isOurs) asked?.answer?.(name, nonce, isKept ? "idle" : "busy");
      if (!isQuestion) hold.triedAt = mono;
      return;
    }
    hold.recall(mono);
    context.wanted.recalled(hold);
    // Its grant was lost, or is about to be read.
    if (this.state === PARKED) this.lookAgain();
    if (!isKept || !keeping) return;
    context.stays.recalled(name);
    sendAtTurnEnd(() => this.#giveBackAlone());
    // Last: a listener may make a call, and would find a lock that is cached and wanted.
    keeping.tellRecalled(context);
  }

  get isSubscribing(): boolean {
    return this.state === SUBSCRIBING;
  }

  get isOurs(): boolean {
    return this.state.isOurs;
  }

  /** Is no caller inside, while the lock stays here? */
  get isKept(): boolean {
    return this.state === KEPT;
  }

  /** May a caller enter without joining the line? */
  get isOpen(): boolean {
    return this.state === KEPT || this.state === LEAVING;
  }

  // ---- it owns the lock

  /** By an answer. */
  #owner(answer: AttemptAnswer & { is: "owner" }, attempt: Attempt): void {
    const { hold, sent, reserves, flag, mode } = attempt;
    const isAgain = mode === "again";
    // Ours, but no message was read. An "owner" that this re-check itself caused needed no message.
    if (isAgain && answer.already) this.resource.selfTest();
    // Other clients keep as many as allowed: for a while, ask for no hold that may stay.
    if (hold.lingers && !answer.isTold && this.kind.policy === "shared") {
      const { learner } = this.context.stays;
      learner.ended(knownReads(this.name), "not kept", 0, clocks.mono.now());
    }
    if (this.kind.asksTwice && (isAgain || mode === "yield")) {
      this.askAgain();
      return;
    }
    const { already, token, at } = answer;
    // RACE: "yours already" does not say which command has won: perhaps one that reserved less. And its
    // time is later than the grant: that it equals the token says nothing.
    hold.reserved = reserved(already ? hold.reserved : reserves, already || token !== at, this.kind);
    // RACE: this re-check kept no other entries. If grants are not received, every re-check ends like
    // this: so the next place re-checks at once.
    this.take(answer, sent, answer.isTold ? flag : 0, isAgain);
  }

  /** `sent`: of the answered command; null: a message. */
  take(grant: Grant, sent: Instant | null, flag: Attempt["flag"], isDue = false): void {
    const { hold } = this;
    if (!hold) return;
    const mono = clocks.mono.now();
    const wall = clocks.wall.now();
    this.to(OWNED, hold, isDue);
    hold.owned(grant, sent, flag, mono, wall);
    this.#firstToken = null;
    this.last = null;
    this.tokensUntil = 0;
    this.#units = grant.units ?? this.run?.units ?? 1;
    this.offer(sent !== null, mono, wall);
  }

  /** The first caller gets the lock, as it is or after a claim. `isDirect`: an answer brought it. */
  offer(isDirect: boolean, mono = clocks.mono.now(), wall = clocks.wall.now()): void {
    const { hold, kind, context } = this;
    const { first } = this.line;
    if (!hold) return;
    const left = hold.left(mono, wall);
    // The caller that it was asked for may have left. Those after the first do not enter before it.
    const isEnough = !this.run || (first !== null && suits(this.run, this.#units, first.terms));
    const isWanted = first !== null && left > 0 && !hold.isRevoked && isEnough;
    const isFull = isDirect && first !== null && hold.mayLive >= first.terms.lease;
    const how = isWanted ? fits(hold, left, first.terms, context.window, isFull) : "too much";
    if (first && how === "enough" && !kind.isConfirmed) this.give(first, mono, wall);
    else if (first && how !== "too much") this.#claim(hold, first, null);
    else {
      // No caller wants it any more; or the message was read so late that another client may have it;
      // or it was requested by a caller with a much longer lease, which has left.
      const { asked, isRevoked } = hold;
      this.drop();
      if (first && isDirect && !isRevoked && left <= 0) this.#outrun(first, asked);
      else this.ask();
    }
  }

  /** The caller's lease was over when the answer came. */
  #outrun(caller: Waiter, asked: Instant): void {
    if (tryAgain(this, caller, clocks.mono.now() - asked.mono)) this.ask();
  }

  give(caller: Waiter, mono = clocks.mono.now(), wall = clocks.wall.now()): void {
    const { hold, line, context, kind, run } = this;
    if (!hold) return;
    const { since } = caller;
    const { events } = context;
    this.leaseTooShort = null;
    if (kind.policy !== "exclusive") {
      // It serves several callers; for the others this place asks anew.
      this.to(IDLE);
      this.resource.share(kind, hold, run, this.#units).begin(line, caller);
      this.ask();
      return;
    }
    line.remove(caller);
    const lease = this.#begin(hold, caller.terms, caller, mono, wall);
    caller.give(lease);
    if (line.first) {
      line.tellBusy();
      if (line.waiting > 0) this.resource.listen();
    }
    if (events.isUsed) tellAcquired(events, lease, mono - since, hold.passes > 0, false);
  }

  #begin(hold: Hold, terms: Terms, caller: Caller, mono: number, wall: number): SharedLease {
    this.to(OWNED, hold);
    const lease = new SharedLease(hold, terms, this, caller, mono, wall);
    this.holder = this.last = lease;
    this.context.watchdog.watch(lease, wall);
    return lease;
  }

  /** A caller enters without joining the line, and without a round trip. Null: it has to wait. */
  takeIn(comer: Applicant, caller: Caller): SharedLease | null {
    const { hold } = this;
    const { events } = this.context;
    const mono = clocks.mono.now();
    const wall = clocks.wall.now();
    if (!hold || !this.isOpen || isTurnSpent(mono)) return null;
    if (next(hold, this, comer, mono, wall) !== "now") return null;
    this.#reopen(false);
    this.#countPass(hold);
    const lease = this.#begin(hold, comer.terms, caller, mono, wall);
    // RACE: last, because a listener may make a call, and the lock is busy by now.
    if (events.isUsed) tellAcquired(events, lease, clocks.mono.now() - mono, true, true);
    return lease;
  }

  /** A caller gets it after a renewal. */
  #claim(hold: Hold, caller: Waiter, last: SharedLease | null): void {
    const claim = new Claim(this, hold, caller, last);
    this.line.remove(caller);
    this.to(CLAIMING, hold);
    this.claim = claim;
    void claim.send();
  }

  claimed({ hold, caller, last, sent, flag, revokedBy }: Claim, answer: RenewAnswer): void {
    this.claim = null;
    if (this.#applies(hold, sent, answer, flag) && hold.left() > 0 && !hold.isRevoked) {
      // Of the caller that had it when the renewal was sent.
      this.#firstToken = hold.token + hold.passes;
      if (!last) {
        if (caller.settled) this.offer(false);
        else this.give(caller);
      } else if (caller.settled) this.#handOnAlone();
      else if (isStillNext(hold, this, caller, clocks.mono.now())) this.#pass(hold, caller);
      else {
        this.#putBack(caller);
        this.#giveBackAlone();
      }
      return;
    }
    const isOver = !hold.isRevoked && hold.left() <= 0;
    // After its deadline it has merely expired: no caller has lost it.
    const isNews = last && answer.is !== "renewed" && !isOver;
    // RACE: the hold may have been granted again. So a failed claim withdraws it.
    this.drop();
    if (isNews) {
      const nobody = departed(last, this.#firstToken ?? hold.token);
      tellLostAlone(this, nobody, hold.isRevoked ? "revoked" : answer.is, revokedBy);
    }
    if (!caller.settled) this.#putBack(caller);
    if (isOver && !caller.settled && !last) this.#outrun(caller, sent);
    else this.ask();
  }

  /**
   * RACE: a caller that does not wait, and was to be the next one here, is answered by the following
   * command, and not at once with "busy".
   */
  #putBack(caller: Waiter): void {
    this.line.putBack(caller);
    if (caller.wait === 0) this.line.awaitAnswer(caller, clocks.mono.now());
  }

  /** Applies a renewal's answer. False: it does not count. */
  #applies(hold: Hold, sent: Instant, answer: RenewAnswer, flag: Attempt["flag"] | null): boolean {
    if (answer.is !== "renewed" || !hold.renewed(sent, answer, flag)) return false;
    this.tokensUntil = Math.max(this.tokensUntil, answer.at ?? 0);
    // The answer says that the lock is ours, but not whether another caller waits.
    if (this.kind.hasStays && answer.waits === undefined) hold.want(clocks.mono.now());
    return true;
  }

  unclaimed({ caller, sent }: Claim, error: unknown): void {
    const { health, line, kind, name, resource } = this;
    this.claim = null;
    this.drop();
    const refusal = kind.isConfirmed ? refused(name, error, kind) : null;
    if (!refusal) {
      health.failed(error);
      if (!caller.settled) line.putBack(caller);
      this.retry();
      return;
    }
    health.answered();
    if (caller.refuse(refusal())) this.context.gaveUp(name, caller, refusal());
    // All that have waited as long get the same: asked one by one, the last of n would get its
    // answer after n timeouts of replicas.
    resource.refuseSince(kind, sent.mono, refusal);
    this.ask();
  }

  // ---- the caller leaves, or loses it

  /** The caller has left. */
  vacated(lease: SharedLease, mono: number, wall: number): Promise<void> {
    const { events } = this.context;
    const by = this.holder;
    const held = mono - lease.since;
    this.ended(lease);
    if (!by) throw new TypeError("the release of a lock that is not held");
    if (events.isUsed) tellReleased(events, lease, held);
    if (lease.isConfirmed) return this.#giveBack(by, held);
    if (lease.terms.linger === 0 || this.line.first || !this.#stays(by, mono, wall))
      return this.#handOn(by, held, mono, wall);
    by.settle();
    return DONE;
  }

  /** No caller waits here. May the lock stay, for a caller that comes? */
  #stays({ terms, kind: by }: SharedLease, mono: number, wall: number): boolean {
    const { hold, kind, name, context } = this;
    const { stays } = context;
    const { learner } = stays;
    if (!hold || hold.isRevoked || !kind.hasStays || by === "multi" || stays.isClosed) return false;
    const maySpare = stays.maySpare(hold, mono);
    if (maySpare !== "yes") {
      const how = maySpare === "too long" ? "not kept" : "given up";
      if (hold.lingers) learner.ended(name, how, this.keeping?.saved ?? 0, mono);
      return false;
    }
    // An answer that takes a lock also says whether the process is notified of recalls.
    const isGranted = hold.flag < 2;
    if (hold.wantedAt === null && learner.keeps(name, mono, this.keeping?.saved ?? 0, isGranted)) {
      this.keeping ??= new Keeping(this, hold, learner);
      this.keeping.begin(mono, terms.linger);
      this.to(KEPT, hold);
      stays.keep(this.keeping);
      // If it was granted by message, Redis must first be asked to notify this process: until then
      // no other process could recall it. RACE: a process that queued after a caller that does not
      // wait has notified no holder. So ask Redis whether another caller waits, unless it has
      // reported that later. A body of any length may come in between: under its own lease nothing
      // is renewed.
      if ((isGranted || hold.seen.mono < hold.triedAt) && !this.isUsed) stays.tell(this);
      return true;
    }
    // One may take it right again. Only while a waiting caller could still get it.
    const comer = { terms, passes: hold.mayPass };
    if (next(hold, this, comer, mono, wall) !== "now" || !learner.comesBack(name)) return false;
    this.keeping ??= new Keeping(this, hold, learner);
    this.#rest(LEAVING, hold);
    return true;
  }

  /** A caller is inside again, or will be. `asks`: after a command. */
  #reopen(asks: boolean): void {
    const { state, keeping, name } = this;
    if (state === LEAVING) this.context.stays.learner.passedBack(name, true);
    else keeping?.taken(asks);
  }

  /** Until the event loop has turned. */
  #rest(state: State, hold: Hold): void {
    this.to(state, hold);
    this.#turned ??= () => {
      if (this.state === RESTING || this.state === LEAVING) this.resume();
    };
    atTurnEnd(this.#turned);
  }

  /** The event loop has turned, or a caller has come. */
  resume(): void {
    this.context.events.step(() => this.#handOnAlone());
  }

  /** No caller waits for how the last one's hold ends. */
  #handOnAlone(): void {
    if (this.last) this.#handOn(departed(this.last), 0).catch(() => {});
  }

  #giveBackAlone(): void {
    if (this.last) this.#giveBack(departed(this.last), 0).catch(() => {});
  }

  /**
   * The lock goes to the next caller here: at once, after a renewal, or after a turn of the event
   * loop. Or it goes back to Redis.
   */
  #handOn(by: Departure, held: number, mono = clocks.mono.now(), wall = clocks.wall.now()): Promise<void> {
    const { hold, line, kind } = this;
    const { first } = line;
    // RACE: the process is ending: the next caller here would get the lock and never know.
    if (!hold || !first || isEnding) return this.#giveBack(by, held);
    const how = next(hold, this, first, mono, wall);
    if (how === "no") return this.#giveBack(by, held);
    by.settle();
    this.#reopen(how === "ask");
    if (how === "ask") this.#claim(hold, first, this.last);
    // Callers that come and go without Redis would keep the event loop from turning.
    else if (kind.hasStays && hold.wantedAt === null && isTurnSpent(mono)) this.#rest(RESTING, hold);
    else this.#pass(hold, first, mono, wall);
    return DONE;
  }

  #pass(hold: Hold, caller: Waiter, mono?: number, wall?: number): void {
    this.#countPass(hold);
    this.give(caller, mono, wall);
  }

  /**
   * After local hand-offs the hold is renewed soon: a loss, or another process that waits, is to be
   * noticed, and the next callers need not wait for that. Others that wait end it soon anyway.
   */
  #countPass(hold: Hold): void {
    hold.passes++;
    hold.turns++;
    if (this.kind.hasStays && hold.wantedAt === null) this.context.stays.used(this);
  }

  /** The hold goes to the next waiter in Redis. Callers here queue again. */
  #giveBack(by: Departure, held: number): Promise<void> {
    const { hold, kind, context, line } = this;
    const { first } = line;
    if (!hold) return DONE;
    this.#learn();
    const release = this.#release(hold, by, held);
    if (first && line.waiting > 0 && kind.yield && !kind.asksTwice && this.resource.isHeard && !isEnding) {
      // Releases it and queues a new one in one command.
      const next = context.newHold(kind, this.name, this, first.terms.label);
      this.to(ASKING, next);
      kind.yield(hold, this.attemptFor("yield", next, first, this.resource.look(), release));
      return release.outcome;
    }
    kind.release(hold, release);
    // RACE: a command sent now would take the lock for a process that has ended.
    if (isEnding) this.retry();
    else if (kind.asksTwice) this.#askWhenOver(release);
    else this.askAfter(hold);
    return release.outcome;
  }

  /** After the release of this hold. */
  protected askAfter(_hold: Hold): void {
    this.ask();
  }

  /**
   * When its release is answered: callers that are here then have their result by that. RACE: a
   * command sent now could be executed before a release that is sent again.
   */
  #askWhenOver({ outcome }: Release): void {
    this.to(ASKING);
    const ask = (): void => this.context.events.step(() => this.ask());
    outcome.then(ask, ask);
  }

  #release(hold: Hold, by: Departure, held: number): Release {
    by.firstToken = this.#firstToken ?? hold.token;
    this.context.inbox.forget(hold);
    return new Release(this, hold, by, held, this.ending);
  }

  /** How the hold ends, for others that use it. */
  protected get ending(): Ending | null {
    return null;
  }

  /** It ends with no caller inside, and its release is sent together with others. */
  takeLeave(): Release {
    const { hold, last } = this;
    if (!hold || !last) throw new TypeError("no lock is kept");
    this.#learn();
    const release = this.#release(hold, departed(last), 0);
    release.outcome.catch(() => {});
    this.stop();
    return release;
  }

  /** The hold ends: what was its time here worth? */
  #learn(): void {
    const { keeping, state, name } = this;
    const { learner } = this.context.stays;
    if (state === LEAVING) learner.passedBack(name, false);
    this.keeping = null;
    if (keeping) learner.ended(name, keeping.end(), keeping.saved, clocks.mono.now());
  }

  protected ended(lease: SharedLease): void {
    const { watchdog, wanted } = this.context;
    watchdog.leases.delete(lease);
    if (wanted.leases.size > 0) wanted.ended(lease.hold);
    if (lease.terms.result) this.line.run = lease.token;
    this.holder = null;
  }

  /**
   * The hold is gone: its holder has lost it. If none is inside, earlier callers may have lost it before
   * they left. RACE: one that waits for its own renewal learns the same by that.
   */
  lose(reason: LossReason, by: string | null = null): void {
    const { hold, holder, last } = this;
    holder?.lose(reason, by);
    if (holder || this.claim || !this.isOurs || !hold || !last) return;
    const nobody = departed(last, this.#firstToken ?? hold.token);
    this.drop();
    this.ask();
    tellLostAlone(this, nobody, reason, by);
  }

  lost(lease: SharedLease, error: LockLostError): void {
    const held = clocks.mono.now() - lease.since;
    this.ended(lease);
    lease.firstToken = this.#firstToken ?? lease.hold.token;
    this.drop();
    this.ask();
    tellLost(this.context.events, lease, held, error);
  }

  renewed(by: SharedLease, sent: Instant, answer: RenewAnswer, flag: Attempt["flag"] | null = null): void {
    const { hold } = by;
    if (hold !== this.hold || !this.isOurs || this.claim) return;
    if (answer.is !== "renewed") {
      this.lose(answer.is);
      return;
    }
    this.#applies(hold, sent, answer, flag);
    // RACE: the lock may have been handed on here since the renewal was sent.
    this.#firstToken = Math.max(this.#firstToken ?? 0, by.token);
    // No caller is inside, and another process waits.
    if (this.isKept && hold.wantedAt !== null) this.#giveBackAlone();
    this.context.wanted.recalled(hold);
  }
}

/** What a place needs of its resource. */
export interface Home {
  /** That of its first caller. */
  readonly kind: LockKind;
  readonly name: string;
  readonly port: Port;
  readonly health: RedisHealth;
  /** Where its messages come; is every one of them received, and may its callers queue? */
  readonly channel: string;
  readonly isHeard: boolean;
  readonly isUnheard: boolean;
  readonly mayQueue: boolean;
  /** The channel's present state, for one command. */
  look(): Channel;
  listen(): void;
  selfTest(): void;
  /** This client's places in the lock's queue, of which the first one re-checks for all. */
  readonly places: RecheckGroup;
  /** The order of callers that have not queued yet. */
  firstTries: number;
  subscribing: number;
  mayAsk(place: Place, mode: "try" | "queue"): boolean;
  firstTried(): void;
  /** This caller waits for one of its own client. */
  awaitSelfWait(caller: Waiter): void;
  /** Until the microtasks have run, more callers may come that one command can serve. */
  readonly isGathering: boolean;
  refuseSince(kind: LockKind, before: number, error: () => Error): void;
  /** A hold came that serves several callers: its users are its own. `run`: for permits. */
  share(
    kind: LockKind,
    hold: Hold,
    run: Run | null,
    units: number,
  ): { begin(line: Line, first: Waiter): void };
  /** This reader enters a hold of other readers here, after a command. False: none may serve it. */
  joins(place: Place, first: Waiter): boolean;
  /** When the first writer here that waits has come; Infinity: none waits. */
  readonly writerSince: number;
  /** The place has its first caller; it has none left. */
  came(place: Place): void;
  gone(place: Place): void;
  [Symbol.iterator](): Iterator<Waiter>;
}

type Channel = NonNullable<Attempt["channel"]>;

/** Where no caller waits, or no message grants the lock, messages are not needed. */
export const UNHEARD: Channel = { name: "", isHeard: false, counted: false };
