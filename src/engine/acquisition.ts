import { LockUnavailableError } from "../api/errors.ts";
import { nounOf } from "../api/wording.ts";
import type { LeaseTooShort } from "../core/lease-too-short.ts";
import { type AttemptOptions, BLOCKED, type LockKind } from "../core/lock-kind.ts";
import type { Expecting } from "../core/port.ts";
import type { RecheckGroup } from "../core/recheck-group.ts";
import type { RedisHealth } from "../core/redis-health.ts";
import { backOff, cooldown, nextTry, sleep } from "../core/schedule.ts";
import { FIRST_REPLY, LEASE_TIME, RECHECKS } from "../defaults.ts";
import {
  type AttemptAnswer,
  foreignFormat,
  isRefusal,
  type ReleaseAnswer,
  unavailable,
  type YieldAnswer,
} from "../redis/replies.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { CallTimer, isSet } from "../util/timers.ts";
import { Command, type Yielded } from "./command.ts";
import type { Context } from "./context.ts";
import type { Grant, Hold } from "./lease/hold.ts";
import { Line } from "./line.ts";
import type { LockChannel, Seen } from "./lock-channel.ts";
import type { Waiter } from "./waiter.ts";
import { WakeFilter } from "./wake-filter.ts";

/**
 * Takes one hold from wanted to owned, for the callers in its line: all callers of a process at one
 * lock, or a single one of a fair lock. Protects them from late answers: an answer counts only for
 * the command that is awaited, a grant only for its own hold (R3), and a lock that no caller awaits
 * is given back. Protects them from sleeping while the lock is free: a message or a timer ends
 * every sleep. One command of a hold is under way at a time.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | idle | nothing of ours | a caller → asking; parked, where other callers of this process are about to queue before it |
 * | asking | unknown: a command is on its way | owner or a grant → owned · held → parked, or asking once more, to queue · failed → parked |
 * | parked | our hold is queued; without a hold, nothing | a grant → owned · a message, its timer, a caller that cannot wait → asking |
 * | owned | the lock is ours, or was until a moment ago: its `Tenure` | released or lost → asking, parked, idle · yielded → asking |
 *
 * A re-check goes out from parked and leaves it there, so that a grant counts meanwhile. When the
 * last caller leaves, parked goes to idle; asking waits for its answer and gives back what it
 * brings.
 */
export class Acquisition implements Expecting {
  readonly line: Line;
  state: State = "idle";
  /** The hold that asks, waits, or owns the lock. */
  hold: Hold | null = null;
  /** Tries of its first caller that got the lock after the caller's lease was over. */
  leaseTooShort: LeaseTooShort | null = null;
  /** Its place among the client's timers; only they write these fields. */
  at = Number.POSITIVE_INFINITY;
  index = -1;
  readonly #lock: AcquisitionHome;
  readonly #wakes: WakeFilter | null;
  /** The command under way whose answer is awaited. */
  #command: Command | null = null;
  /** Position in the queue, as Redis last reported it. */
  #position: number | null = null;
  /** Unsuccessful tries since the lock was ours, for kinds without messages. */
  #tries = 0;
  #reason: Reason = "grant";
  /** Upper bound of the next sleep; may be set while a re-check is under way. */
  #latest = Number.POSITIVE_INFINITY;
  /** Counts changes of state: an answer awaited in an earlier state no longer counts. */
  #changes = 0;

  constructor(lock: AcquisitionHome) {
    this.#lock = lock;
    this.line = new Line(lock.name, lock.context, this);
    this.#wakes = lock.kind.wake.by === "message" ? new WakeFilter() : null;
  }

  isParkedFor(reason: Reason): boolean {
    return this.state === "parked" && this.#reason === reason;
  }

  /** Is it between two tries, so that no message would wake it if the lock became free? */
  get isUnsure(): boolean {
    return this.isParkedFor("subscription") || this.isParkedFor("retry");
  }

  get health(): RedisHealth {
    return this.#lock.health;
  }

  /** Does its place in the queue only ask a possibly idle holder? */
  get isQuestion(): boolean {
    return this.isParkedFor("grant") && this.line.isAskingOnly;
  }

  // ---- asking

  /** Asks for the first caller. */
  start(): void {
    const { first } = this.line;
    if (!first) this.stop();
    else this.startAnew(first);
  }

  /** Asks with a new hold. */
  startAnew(head: Waiter): void {
    const lock = this.#lock;
    const { kind, context } = lock;
    const seen = this.line.waiting > 0 ? lock.channel.look() : null;
    const mode = seen?.mayQueue ? "queue" : "try";
    if (seen) {
      // RACE: at a fair lock, a caller must not queue before an earlier one whose try is still
      // unanswered, or which is about to be notified of the subscription. And when a thousand
      // callers come at once, they need not all try before they queue.
      const isNew = this.state === "idle";
      const isHeldBack = lock.firstTries > 0 || (isNew && lock.subscribing > 0);
      if (mode === "queue" ? lock.isSolitary && isHeldBack : isNew && lock.isCrowded) {
        this.#subscribe(head);
        return;
      }
    }
    const hold = context.newHold(kind, lock.name, this, head.terms.label);
    this.#ask(hold, mode, head, seen, null);
    if (seen && !seen.isHeard) lock.channel.prepare(mode);
  }

  /** Where waiting callers receive the lock's messages. Null: no caller would wait. */
  get #seen(): Seen | null {
    return this.line.waiting > 0 ? this.#lock.channel.look() : null;
  }

  /**
   * Ends a hold in favour of other processes, and queues a new one. Resolves with the answer about
   * the old hold; null: it ended.
   */
  yield(old: Hold, head: Waiter): Promise<ReleaseAnswer | null> {
    const { kind, name, context } = this.#lock;
    const hold = context.newHold(kind, name, this, head.terms.label);
    return new Promise((tell, fail) => {
      this.#ask(hold, "yield", head, this.#seen, { hold: old, tell, fail });
    });
  }

  #ask(
    hold: Hold,
    mode: AttemptOptions["mode"],
    head: Waiter,
    seen: Seen | null,
    yielded: Yielded | null,
  ): void {
    const lock = this.#lock;
    const { kind, health, context } = lock;
    // Where locks are granted by message, the client's own channel serves for the lock.
    const isQueued = kind.wake.by === "grant";
    const command = new Command(this, {
      hold,
      mode,
      head,
      flag: hold.lingers ? 2 : 0,
      window: context.stays.window,
      seen,
      isQueued,
      position: this.#position,
      yielded,
    });
    if (this.#wakes) {
      if (command.isHeard) command.wakes = this.#wakes.count;
      command.isWoken = this.#wakes.asks();
    }
    if (head.isAsking || head.batchedTry) command.nonce = this.#nonceFor(command);
    if (command.isFirst) lock.firstTries++;
    if (mode !== "again") this.#to("asking", hold);
    this.#command = command;
    health.asked(command.sent.mono);
    if (yielded && kind.yield) kind.yield(yielded.hold, command);
    else kind.attempt(command);
  }

  /**
   * Callers that do not wait ask a possibly idle holder whether it is in use, and get "busy" at
   * once when it is.
   */
  #nonceFor({ mode, head }: Command): string | null {
    const { kind, context } = this.#lock;
    const { inbox, holderQueries, timers } = context;
    if (mode === "try") return kind.answer && head.batchedTry && holderQueries.noReplyNonce;
    // Writers ask readers.
    const isAsked = kind.answer !== null || kind.mode === "write";
    if (mode !== "queue" || !isAsked || !this.line.isAskingOnly) return null;
    const nonce = holderQueries.nonce();
    inbox.asked.set(nonce, () => {
      this.line.stopAsking();
      this.deserted();
    });
    timers.set(new CallTimer(() => inbox.asked.delete(nonce)), clocks.mono.now() + 2 * FIRST_REPLY);
    return nonce;
  }

  // ---- answers

  answered(command: Command, answer: AttemptAnswer | YieldAnswer): void {
    this.#lock.context.events.step(() => this.#answered(command, answer));
  }

  #answered(command: Command, answer: AttemptAnswer | YieldAnswer): void {
    const { hold, mode, sent, yielded } = command;
    const lock = this.#lock;
    const { health } = lock;
    const isAwaited = this.#isAwaited(command);
    health.said(sent.mono);
    if (answer.is === "held") this.#wakes?.met(sent.mono, command.isWoken, answer);
    if (!isAwaited) {
      // RACE: a grant message was read before this reply: then the grant counts, and the hold has
      // its own end. RACE: or the hold has ended, and a copy of the command that Redis ran after
      // that took the lock once more. RACE: its release is under way, and the server does not know
      // that script: the release would be sent again, after this withdrawal, and report a loss.
      if (answer.is === "owner" && !lock.context.isNamed(hold.id)) this.#leaveIfOver(hold);
    } else if (!("at" in answer)) {
      // The answer is about the hold to be yielded: nothing was queued.
      lock.context.inbox.forget(hold);
      this.start();
    } else if (answer.is === "owner") {
      if (mode === "again") this.#lookedOwned(answer.already);
      // RACE: "yours already" does not say which command has won: perhaps one that reserved less.
      if (!answer.already) hold.reserved = command.reserves;
      this.#own(answer, sent, answer.isTold ? command.flag : 0);
    } else if (answer.is === "held") {
      hold.answered(sent, answer.at);
      if (mode !== "again") this.#held(command, answer);
      else this.#lookedHeld(command, answer);
    } else if (answer.is === "blocked") this.#refused(command, BLOCKED);
    else if (answer.is === "refused") this.#refused(command, answer.error);
    else this.#unplaced(command, answer.is);
    yielded?.tell("at" in answer ? null : answer);
    if (command.isFirst) lock.firstTried();
  }

  /**
   * Redis did nothing, for a reason that concerns this caller only: callers that share its command
   * now ask on their own.
   */
  #refused({ hold, head }: Command, error: Error): void {
    const { kind, context } = this.#lock;
    // RACE: an earlier copy of a queueing command may have run while the lock was still available.
    if (error === BLOCKED) context.inbox.forget(hold);
    else context.leave(kind, hold);
    this.line.refuse(head, error);
    this.line.asksAgain();
    this.start();
  }

  /** "gone": neither queued nor ours. "stale": Redis ran the command later than it may. */
  #unplaced({ hold, mode }: Command, is: "gone" | "stale"): void {
    if (mode === "again" && is === "stale") {
      this.lookAgain();
      return;
    }
    const { kind, context, channel } = this.#lock;
    if (mode === "again") {
      channel.selfTest();
      // RACE: whatever removed this entry may have removed those after it, so the client's next
      // hold re-checks at once.
      this.lookBefore(0);
    }
    // The server's clock is known now. A first copy of the command may have run in time, and would
    // own the lock.
    context.leave(kind, hold);
    this.start();
  }

  failed(command: Command, error: unknown): void {
    this.#lock.context.events.step(() => this.#failed(command, error));
  }

  #failed(command: Command, error: unknown): void {
    const { hold, mode, yielded } = command;
    const lock = this.#lock;
    const { health, kind, context, name } = lock;
    const isAwaited = this.#isAwaited(command);
    health.failed(error);
    if (yielded) context.leave(kind, yielded.hold);
    if (!isAwaited) {
      // The last copy's effect is unknown. A hold that was granted by message has its own end.
      this.#leaveIfOver(hold);
      yielded?.tell(null);
    } else if (mode === "again") this.#lookFailed(error);
    else {
      context.leave(kind, hold);
      // A client with another format holds it. A caller that may wait treats it as any other
      // holder.
      const isForeign = foreignFormat(error) !== null;
      const refusal = (): Error => unavailable(name, "", error, nounOf(kind));
      this.line.refuseAll(refusal, isForeign ? "hasty" : "unanswered");
      if (isForeign) this.line.tellBusy();
      this.retry();
      yielded?.fail(error);
    }
    if (command.isFirst) lock.firstTried();
  }

  #isAwaited(command: Command): boolean {
    if (this.#command !== command) return false;
    this.#command = null;
    return command.mode === "again"
      ? this.hold === command.hold && this.state === "parked"
      : this.state === "asking";
  }

  /**
   * RACE: a readers' shared hold outlives this acquisition, and stays expected until the readers
   * have left. Do not withdraw it, whatever this acquisition asks for now.
   */
  #leaveIfOver(hold: Hold): void {
    const { kind, context } = this.#lock;
    if (this.hold !== hold && !context.inbox.isExpected(hold)) context.leave(kind, hold);
  }

  /** `sent`, `flag`: of the answered command; `sent` null: the grant came by message. */
  #own(grant: Grant, sent: Instant | null, flag: AttemptOptions["flag"]): void {
    const { hold } = this;
    if (!hold) return;
    this.#to("owned", hold);
    this.#command = null;
    this.#tries = 0;
    this.#wakes?.owned();
    hold.owned(grant, sent, flag);
    this.#lock.won(this, hold, sent !== null);
  }

  // ---- messages about the hold, until it is owned

  granted(grant: Grant): void {
    const { hold, state } = this;
    if (hold && (state === "asking" || state === "parked") && hold.fits(grant))
      this.#lock.context.events.step(() => {
        // Its entry has reserved a token for each local hand-off.
        hold.reserved = hold.mayPass;
        this.#own(grant, null, 0);
      });
  }

  /** It was force-released before the answer that granted it was read. */
  revoked(): void {
    if (this.hold) this.hold.isRevoked = true;
  }

  /**
   * Another process wants the lock. RACE: this can be read before the answer to the command that
   * took the lock, and that answer says that no process waits. So it counts for a hold in any
   * state, until the hold ends. A caller that does not wait only asks whether the holder is in use.
   */
  recalled(nonce: string | null, isQuestion: boolean): void {
    const { hold, state } = this;
    if (!hold || (nonce !== null && isQuestion)) return;
    hold.recall(clocks.mono.now());
    this.#lock.context.wanted.recalled(hold);
    // Its grant was lost, or is about to be read.
    if (state === "parked") this.lookAgain();
  }

  // ---- not the owner

  /** Another client holds the lock. */
  #held(command: Command, { ttl, position, contended, flag }: AttemptAnswer & { is: "held" }): void {
    const { line } = this;
    const { kind, channel, health, context } = this.#lock;
    const { hold } = command;
    if (contended && line.hasDeadlineBefore(clocks.mono.now() + ttl)) {
      // No client holds it, so "another client holds it" would be wrong: retries for at most the
      // time of a first command.
      context.inbox.forget(hold);
      health.failure = new Error("no caller got it, because the votes were split");
      this.#retryAt(clocks.mono.now() + ttl);
      return;
    }
    line.onHeld(flag === 2, position !== null, channel.isHeard && !kind.sharing);
    // RACE: listeners of both events may abort a caller, or make a call. So the first caller is
    // read after them.
    if (line.first) this.#lock.waits(line.first);
    line.tellBusy(hold.sent.mono);
    const head = line.first;
    if (position !== null && head) {
      this.#park("grant", hold);
      this.#position = position;
      this.#sleepFor(command, ttl);
      // RACE: since callers that do not wait had the holder asked, a caller that waits may have
      // come, and the holder was not notified of it. Or another caller that does not wait has come,
      // and the holder may be gone by now.
      if (line.unanswered > 0 || (command.nonce !== null && !line.isAskingOnly)) this.answerSoon();
      return;
    }
    if (position !== null) context.leave(kind, hold);
    else context.inbox.forget(hold);
    if (!head) this.stop();
    else if (line.unanswered > 0) {
      // Subscribe meanwhile, so that tryLock() calls that keep arriving do not delay callers that
      // wait.
      if (line.waiting > 0) channel.listen();
      line.asksAgain();
      this.start();
    } else this.#waitFor(head, ttl, command.wakes, command.isFirst);
  }

  /**
   * Waits until the lock may be free. `ttl`: the holder's. `wakes`: how many messages had come when
   * the try was sent. `isFirst`: the try was for a caller that will queue.
   */
  #waitFor(head: Waiter, ttl: number, wakes: number, isFirst: boolean): void {
    const { kind, channel, isSolitary } = this.#lock;
    if (kind.wake.by === "time") this.#pause(kind.wake.pause(this.#tries++));
    else if (!channel.isHeard && !channel.mayQueue) this.#subscribe(head);
    else if (isSolitary && isFirst) {
      // RACE: earlier callers wait for an answer, or for the subscription. All queue in order,
      // after the last answer.
      this.#park("subscription");
      this.#sleepUntil(nextTry(head.since));
    }
    // RACE, a lost wake-up: (1) our try runs, the lock is held; (2) it is released and the message
    // is read; (3) the answer "held" is read; (4) we sleep. So a message that came after the try
    // was sent leads to another try instead.
    else if (!this.#wakes || (wakes !== this.#wakes.count && !this.#wakes.rests)) this.start();
    else {
      this.#park("message");
      this.#sleep(sleep(ttl, null, false));
      if (wakes !== this.#wakes.count) this.lookBefore(this.#wakes.restsUntil);
    }
  }

  /**
   * RACE: until the subscription is acknowledged, a release reaches no process here. So: subscribe,
   * then ask, then sleep. The attempt before the sleep is sent after the acknowledgement.
   */
  #subscribe(head: Waiter): void {
    const lock = this.#lock;
    this.#park("subscription");
    // The subscription may take long, or hang, and meanwhile no message would report a release: so
    // try periodically.
    this.#sleepUntil(nextTry(head.since));
    const changes = this.#changes;
    lock.channel.ready().then(
      () => {
        if (this.#changes === changes) lock.context.subscribed();
        // The subscription was lost again already.
        if (this.#changes === changes && lock.firstTries === 0) this.start();
      },
      (error: unknown) => {
        // Another try was made meanwhile, and may be subscribing again. Only that one continues, or
        // tries would multiply.
        if (this.#changes !== changes) return;
        // No answer would be received.
        this.line.stopAsking();
        lock.health.failed(error);
        // A refusal is final. A lost connection is not: until it is back, callers can wait without
        // messages.
        if (isRefusal(error)) {
          const what = "its channel cannot be subscribed to";
          this.line.refuseAll(() => new LockUnavailableError(lock.name, what, error, nounOf(lock.kind)));
        }
        // RACE: a listener that receives the refusal may have made another call: then the lock is
        // already being requested.
        if (this.#changes !== changes) return;
        // The pause does not depend on the number of failures: tries in between are answered, and
        // would become storms.
        if (this.line.first) this.#retryAt(nextTry(this.line.first.since));
        else this.stop();
      },
    );
  }

  /** A command failed: asks again after a pause, for the callers that still wait. */
  retry(failures = this.#lock.health.failures): void {
    if (this.line.first) this.#retryAt(clocks.mono.now() + backOff(failures));
    else this.stop();
  }

  #retryAt(at: number): void {
    this.#park("retry");
    this.#sleepUntil(at);
  }

  /** Our own release was sent; its message wakes all waiters, this process too. */
  parkForRelease(): void {
    this.#park("release");
    this.#sleep(sleep(RECHECKS[0].period, null, false));
  }

  /**
   * The lock was ours for `held` ms, and no message announces its release to others. A try right
   * after the release would reach Redis in the same packet, and a process that polls would never
   * find the lock free.
   */
  backOffAfterRelease(held: number): void {
    const delay = cooldown(held);
    if (delay > 0) this.#pause(delay);
    else this.start();
  }

  /** Tries again after `delay` ms, because no message will come. */
  #pause(delay: number): void {
    this.#park("message");
    this.#sleep(Math.min(delay, this.line.lastTry - clocks.mono.now()));
  }

  /** A message of a kind without a queue: the lock may be free. `word`: the message's text. */
  woken(word = ""): void {
    const isHeeded = this.#wakes?.heard(word) ?? true;
    if (this.state !== "parked" || this.hold) return;
    if (isHeeded) this.start();
    else this.lookBefore(this.#wakes?.restsUntil ?? 0);
  }

  // ---- re-checks

  /** A message may have been missed, or the connection is back: sleeping longer has no purpose. */
  lookAgain(): void {
    const { state, hold } = this;
    const { first } = this.line;
    // RACE: a message published meanwhile may be newer than the answer to the command under way.
    if (this.#command) this.#command.isHeard = false;
    if (state === "asking") this.#wakes?.heard("");
    else if (state !== "parked") return;
    else if (!hold) this.start();
    else if (first && !this.#command && (this.#lock.places?.isFirst(this) ?? true)) {
      this.#lock.context.timers.clear(this);
      this.#lock.waits(first);
      // A listener may have aborted the caller, and with it the acquisition.
      if (this.hold === hold && this.line.first) this.#ask(hold, "again", this.line.first, this.#seen, null);
    }
  }

  /**
   * RACE: a caller waits for an answer that Redis has not given yet. The place in the queue says
   * nothing about a holder that is gone. So ask Redis now, unless a command is already under way.
   */
  answerSoon(): void {
    const { state, hold } = this;
    const { first } = this.line;
    if (state === "idle" || (state === "parked" && !hold)) this.start();
    // Any place of this client will do: its command keeps all entries, and the first place keeps
    // its re-check time.
    else if (state === "parked" && hold && first && !this.#command) {
      this.#lock.context.timers.clear(this);
      this.#ask(hold, "again", first, this.#seen, null);
    }
  }

  /** A re-check was answered: another client holds the lock. */
  #lookedHeld(command: Command, { position, ttl }: AttemptAnswer & { is: "held" }): void {
    this.#position = position;
    this.#sleepFor(command, ttl);
    this.line.tellBusy(command.sent.mono);
    // RACE: a caller that does not wait may have come after this re-check was sent: its answer may
    // describe a time before that.
    if (this.line.unanswered > 0) this.answerSoon();
    else this.deserted();
  }

  /**
   * Redis did not answer a re-check. Callers that wait for an answer get the error; the others
   * re-check after a pause.
   */
  #lookFailed(error: unknown): void {
    const { health, name, kind } = this.#lock;
    this.#sleep(backOff(health.failures));
    this.line.refuseAll(() => unavailable(name, "", error, nounOf(kind)), "unanswered");
    this.deserted();
  }

  /** A re-check was answered "owner". `already`: the hold owned the lock before. */
  #lookedOwned(already: boolean): void {
    // Ours, but no message was read. An "owner" that this re-check itself caused needed no message.
    if (already) this.#lock.channel.selfTest();
    // This re-check kept no other entries. If grants are not received, every re-check ends like
    // this: so the next hold re-checks at once.
    this.lookBefore(0);
  }

  // ---- its timer

  /**
   * A hold that receives no messages re-checks as if it were first in the queue: its grant must be
   * found within the window.
   */
  #sleepFor({ mode, isHeard }: Command, ttl: number): void {
    const { channel } = this.#lock;
    const position = this.#position === null || channel.isHeard ? this.#position : 0;
    this.#sleep(sleep(ttl, position, mode === "again"));
    // RACE: a grant published before the acknowledgement of the subscription reached no process.
    if (!isHeard && channel.isHeard) this.lookAgain();
  }

  /** Re-checks at this time at the latest. */
  lookBefore(at: number): void {
    this.#latest = Math.min(this.#latest, at);
    if (this.state === "parked" && !this.#command && !(isSet(this) && this.at <= at)) this.#sleep(LEASE_TIME);
  }

  /**
   * Sleeps for `delay` ms, or until the latest time that was set. Among several places only the
   * first re-checks.
   */
  #sleep(delay: number): void {
    if (this.hold && this.#lock.places?.isFirst(this) === false) return;
    this.#sleepUntil(Math.min(clocks.mono.now() + delay, this.#latest));
    this.#latest = Number.POSITIVE_INFINITY;
  }

  #sleepUntil(at: number): void {
    this.#lock.context.timers.set(this, at);
  }

  /** Time to re-check. */
  ring(): void {
    const { health, context } = this.#lock;
    // While the connection is away, more commands would only pile up in it. When it is back, every
    // place re-checks.
    if (context.commands.isAway) {
      health.failed(context.commands.trouble());
      this.#sleepUntil(clocks.mono.now() + backOff(health.failures));
    } else this.lookAgain();
  }

  // ---- callers go

  late(waiter: Waiter): void {
    this.#lock.late(this, waiter);
  }

  /** Its signal aborted, or its client closes: it gets its answer at once. */
  leave(waiter: Waiter, reason: unknown): void {
    this.line.refuse(waiter, reason);
    this.deserted();
  }

  /** The last caller may have left. */
  deserted(): void {
    if (this.line.first) return;
    // A caller that comes while the last try is still under way has not waited before.
    this.#tries = 0;
    if (this.state !== "parked") return;
    const { hold } = this;
    // The entry may stay until it expires, and be granted at its end.
    hold?.asks(LEASE_TIME);
    if (hold) this.#lock.context.leave(this.#lock.kind, hold);
    this.stop();
  }

  stop(): void {
    this.#command = null;
    if (this.state !== "idle") this.#to("idle");
    this.#lock.left(this);
  }

  // ---- its state

  #park(reason: Reason, hold: Hold | null = null): void {
    this.#to("parked", hold);
    this.#reason = reason;
    if (reason === "subscription") this.#lock.subscribing++;
    if (hold) this.#lock.places?.add(this);
  }

  /** @throws Error for a move that is not in the table: a bug that must not go unnoticed. */
  #to(state: State, hold: Hold | null = null): void {
    if (!MOVES[this.state].includes(state))
      throw new Error(`an acquisition of a lock: illegal move from ${this.state} to ${state}`);
    const { places } = this.#lock;
    const wasParked = this.state === "parked";
    const wasQueued = wasParked && this.hold !== null;
    if (wasParked && this.#reason === "subscription") this.#lock.subscribing--;
    // RACE: it was granted while its re-check was under way. That re-check finds no own entry, and
    // so keeps none of the others: the next place re-checks at once.
    const dueAt = wasQueued && this.#command ? 0 : isSet(this) ? this.at : this.#latest;
    this.#lock.context.timers.clear(this);
    this.#latest = Number.POSITIVE_INFINITY;
    this.#changes++;
    this.state = state;
    this.hold = hold;
    if (wasQueued) places?.remove(this, dueAt);
  }
}

/** What an acquisition needs of its lock, and reports to it. */
export interface AcquisitionHome {
  readonly kind: LockKind;
  readonly name: string;
  readonly context: Context;
  readonly health: RedisHealth;
  readonly channel: LockChannel;
  /** Does each caller have its own place in Redis's queue? */
  readonly isSolitary: boolean;
  /** This client's places at the lock, of any kind; null: there is at most one. */
  readonly places: RecheckGroup | null;
  /** Is the lock unlikely to be free, because other callers of this client have places there? */
  readonly isCrowded: boolean;
  /** How many tries of callers that will queue are under way; `firstTried`: one was answered. */
  firstTries: number;
  firstTried(): void;
  /** How many callers will queue as soon as the subscription is acknowledged. */
  subscribing: number;
  /** A caller waits in Redis. */
  waits(head: Waiter): void;
  /** The lock is ours: by an answer to the acquisition (`isDirect`), or by a grant message. */
  won(one: Acquisition, hold: Hold, isDirect: boolean): void;
  /** A caller's time is over: for its wait, or for its first command. */
  late(one: Acquisition, waiter: Waiter): void;
  /** No caller is left. */
  left(one: Acquisition): void;
}

type State = "idle" | "asking" | "parked" | "owned";

/**
 * What a parked acquisition waits for, in addition to its timer. `release`: the message of its own
 * process's release.
 */
type Reason = "grant" | "message" | "release" | "subscription" | "retry";

const MOVES: Readonly<Record<State, readonly State[]>> = {
  idle: ["asking", "parked"],
  asking: ["idle", "asking", "parked", "owned"],
  parked: ["idle", "asking", "parked", "owned"],
  owned: ["idle", "asking", "parked"],
};
