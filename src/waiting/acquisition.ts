import { LEASE_TIME, RECHECKS, WAKE_REST } from "../defaults.ts";
import { LockUnavailableError } from "../errors.ts";
import type { Grant, Hold } from "../lease/hold.ts";
import { type AttemptAnswer, foreignFormat, isRefusal, unavailable } from "../redis/replies.ts";
import { now } from "../util/clock.ts";
import { Nap } from "./nap.ts";
import type { Place } from "./place.ts";
import { backOff, nextTry, rest, sleep } from "./schedule.ts";
import { watchSelfWait } from "./self-wait.ts";
import { ACQUISITION_MOVES, type AcquisitionState, type Asking, assertMove } from "./states.ts";
import { BLOCKED, type Waiter } from "./waiter.ts";

/** How many wake-ups came, where none would have been heard. */
const UNHEARD = -1;

/** For whom a search is made. */
interface AcquisitionOwner {
  /** The lock is ours, by an answer (`isDirect`) or by a grant message. */
  found(hold: Hold, isDirect: boolean): void;
  /** No caller is left. */
  nobodyLeft(): void;
}

/**
 * The first half of a turn: from wanting a lock to owning it. The only place that asks, parks and looks again.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | off | nothing of ours is waiting | `start()` → asking, or subscribing first where the client has more places · after a yield → parked |
 * | asking | unknown: an acquire is on its way | owner or a grant → off, found · held → parked, or subscribing first · failed → retrying |
 * | subscribing | nothing of ours | acknowledged → asking, now with a place in the queue · its alarm, or a new caller → asking · failed → retrying, then with a place unheard |
 * | parked | our hold is queued; without a queue, nothing | a grant → off, found · a wake-up, or without a place a new caller who would not wait → asking · a re-check: owner → off, found; gone → asking |
 * | retrying | nothing known to be ours | its alarm, or a new caller → asking |
 *
 * When the last caller leaves, parked, subscribing and retrying go to off; asking waits for its answer and gives back
 * what it brings. Every answer is compared with the state and the hold that it was asked for (R3).
 */
export class Acquisition {
  readonly #place: Place;
  readonly #seeker: AcquisitionOwner;
  /** Made when it is first needed: of many places at one lock only the first one sleeps. */
  #made: Nap | null = null;
  #state: AcquisitionState = { at: "off" };
  /** How many wake-ups came, how many of them a try has followed, and what the last one said. */
  #wakes = 0;
  #heeded = 0;
  #word = "";
  /** The holder that the last try met, and when its TTL ends by the server's clock, in ms. */
  #met: string | undefined;
  #metUntil = 0;
  /** How many words in a row proved to be in vain. */
  #vain = 0;
  /** Until then wake-ups lead to one try together, at this time. */
  #restsUntil = 0;
  /** Tries in vain since the last turn, for kinds without messages. */
  #tries = 0;

  constructor(place: Place, seeker: AcquisitionOwner) {
    this.#place = place;
    this.#seeker = seeker;
  }

  /** Is the lock being asked for, or will be as soon as somebody comes: do new callers share a first command? */
  get isAsking(): boolean {
    return this.#state.at === "asking" || this.isUnsure || this.isFreed;
  }

  /** Does it wait for the message of its own release, to try together with all others? */
  get isFreed(): boolean {
    return this.#state.at === "parked" && this.#state.isFreed;
  }

  /** Is it between two tries, and would not hear if the lock became free? */
  get isUnsure(): boolean {
    return this.#state.at === "retrying" || this.#state.at === "subscribing";
  }

  /** Has it found the lock held, and sleeps without a place in a queue? */
  get isUnplaced(): boolean {
    return this.#state.at === "parked" && this.#state.hold === null && !this.#state.isFreed;
  }

  /** The hold that asks or waits. */
  get hold(): Hold | null {
    return "hold" in this.#state ? this.#state.hold : null;
  }

  /** The hold that waits in the queue, if one does. */
  get queued(): Hold | null {
    return this.#state.at === "parked" ? this.#state.hold : null;
  }

  /** Asks for the first caller with a new hold. */
  start(): void {
    const { line } = this.#place;
    const head = line.first;
    if (!head) return void this.#stop();
    const isQueueing = line.isPatient && this.#place.mayQueue;
    // A thousand callers of a fair lock who come at once need not all try before they queue.
    const isUseless = !isQueueing && line.isPatient && this.#place.isCrowded;
    if (isUseless && this.#state.at === "off") return void this.#subscribe(head);
    if (isQueueing) this.#place.listenAhead();
    this.#ask(this.#place.newHold(), head, isQueueing);
  }

  #ask(hold: Hold, head: Waiter, isQueueing: boolean): void {
    const { kind, health, isSubscribed } = this.#place;
    // RACE 2: an answer from before the acknowledgement is not the last one, whenever it is read.
    const wakes = isSubscribed ? this.#wakes : UNHEARD;
    const isWoken = this.#wakes !== this.#heeded;
    this.#heeded = this.#wakes;
    const state: Asking = { at: "asking", hold, isQueueing };
    this.#to(state);
    if (head.link) head.link.hold = hold;
    health.sending();
    kind.attempt(hold, this.#place.ask(hold, isQueueing ? "queue" : "try", head)).then(
      (answer) => {
        if (answer.is === "held") this.#meet(hold, answer, isWoken);
        this.#asked(state, wakes, answer, head);
      },
      (error: unknown) => this.#failed(state, error),
    );
  }

  #asked(state: Asking, wakes: number, answer: AttemptAnswer, head: Waiter): void {
    const { hold } = state;
    this.#place.health.answered();
    // RACE 4: granted by message before this reply was read. The grant counts, and the hold has its own end.
    if (this.#state.at !== "asking" || this.#state.hold !== hold) {
      // RACE 15: it has come to its end, and a copy of the command that Redis ran behind that has taken the lock once more.
      if (answer.is === "owner") this.#place.withdrawIfOver(hold);
      return;
    }
    // Of a try whose place queues by now, only that it has won.
    if (this.#state !== state && answer.is !== "owner") return;
    hold.validity.answered(hold.sent, answer.at);
    if (answer.is === "owner") this.#own(hold, answer, true);
    else if (
      answer.is === "held" &&
      answer.isSplit &&
      this.#place.line.isHasty(performance.now() + answer.ttl)
    )
      this.#contend(hold, answer.ttl);
    else if (answer.is === "held") this.busy(hold, answer.ttl, answer.position, wakes);
    else if (answer.is === "blocked") this.#blocked(hold, head);
    else {
      // Stale: older than its notAfter when Redis ran it. The server's clock is known now. A first copy of the command may
      // have been in time, and owns the lock.
      this.#place.withdraw(hold);
      this.start();
    }
  }

  /**
   * Everybody who may PUBLISH can say that a lock without queue may be free. When it is true, the lock has changed hands, or
   * its holder is the one that the word names: the try behind it meets another holder, or another end of its TTL. When two
   * tries in a row, each behind a word, meet what the one before has met, then the words of the next WAKE_REST ms lead to one
   * try together. RACE: not when one does. A try can overtake the word of a release, and meets the next holder already; the
   * word comes then, and the try behind it meets that holder again.
   */
  #meet(hold: Hold, { holder, at, ttl }: AttemptAnswer & { is: "held" }, isWoken: boolean): void {
    const until = at === 0 ? 0 : at / 1_000 + ttl;
    const isSame = holder === this.#met && (until === this.#metUntil || Math.abs(until - this.#metUntil) < 2);
    const isVain = isWoken && holder !== undefined && isSame && holder !== this.#word;
    this.#vain = isVain ? this.#vain + 1 : 0;
    this.#restsUntil = this.#vain > 1 ? hold.sent.mono + WAKE_REST : 0;
    this.#met = holder;
    this.#metUntil = until;
  }

  get #rests(): boolean {
    return this.#restsUntil > performance.now();
  }

  /** Nobody holds the lock, so "somebody else holds it" would be wrong: tried again for as long as a first command may take. */
  #contend(hold: Hold, pause: number): void {
    const { health } = this.#place;
    this.#place.forget(hold);
    health.failure = new Error("nobody holds the lock, and nobody got it: the votes were split");
    this.#to({ at: "retrying" });
    this.#nap.until(performance.now() + pause);
  }

  /** Nothing was done, for a reason that concerns this caller only: those who share its try ask for themselves. */
  #blocked(hold: Hold, caller: Waiter): void {
    const { line } = this.#place;
    this.#place.forget(hold);
    line.refuse(caller, BLOCKED);
    line.asksAgain();
    this.start();
  }

  /** The lock is held by somebody else. `wakes`: how many wake-ups had come when that was asked. */
  busy(hold: Hold, ttl: number, position: number | null, wakes = this.#wakes): void {
    const { line, kind } = this.#place;
    // Who comes while this process is queued would be told the same.
    line.tellBusy(position === null ? hold.sent.mono : undefined);
    const head = line.first;
    if (head) watchSelfWait(this.#place, head);
    if (position !== null && head) {
      this.#park(hold, ttl, position, false);
      return;
    }
    if (position !== null) this.#place.withdraw(hold);
    else this.#place.forget(hold);
    if (!head) this.#stop();
    else if (line.isUnanswered) {
      // Who waits must not wait longer for others who come and go.
      if (line.isPatient) this.#place.listenAhead();
      line.asksAgain();
      this.start();
    } else if (kind.pause) this.#pause(kind.pause(this.#tries++));
    else if (!this.#place.isSubscribed && !this.#place.mayQueue) void this.#subscribe(head);
    // RACE 1, a lost wake-up: (1) our try runs, the lock is held; (2) it is released and the message is read; (3) the
    // answer "held" is read; (4) we sleep. A message since the sending of the try leads to another try instead.
    else if (kind.queues || (wakes !== this.#wakes && !this.#rests)) this.start();
    else {
      this.#park(null, ttl, null, false);
      if (wakes !== this.#wakes) this.lookBefore(this.#restsUntil);
    }
  }

  #failed(state: Asking, error: unknown): void {
    const { health, line, name } = this.#place;
    health.failed(error);
    // RACE 4 again: granted by message, so the reply is not needed; or asked again meanwhile.
    if (this.#state !== state) {
      // RACE 15 again: what the last copy has done nobody knows.
      this.#place.withdrawIfOver(state.hold);
      return;
    }
    this.#place.withdraw(state.hold);
    // Another version holds it: who may wait waits until that is over, as for any other holder.
    const isForeign = foreignFormat(error) !== null;
    line.refuseAll(() => unavailable(name, "the command failed", error), isForeign ? "hasty" : "unanswered");
    if (isForeign) line.tellBusy();
    this.retry();
  }

  /** RACE 2: register, then check, then sleep. The attempt that finds the lock held is sent after the acknowledgement. */
  async #subscribe(head: Waiter): Promise<void> {
    const state: AcquisitionState = { at: "subscribing" };
    this.#to(state);
    // It may take long, or hang, and nobody would tell of a lock that is given back meanwhile: it is tried now and then.
    this.#nap.until(nextTry(head.since));
    try {
      await this.#place.listen();
      if (this.#state !== state) return;
      this.#place.room.subscribed();
      // Lost again already.
      if (this.#state === state) this.start();
    } catch (error) {
      // Tried meanwhile, and perhaps subscribing again: then that is what counts, or tries would breed tries.
      if (this.#state !== state) return;
      const { line, name, health } = this.#place;
      health.failed(error);
      // A refusal is final. A lost connection is not: until it is back, the lock can be waited for unheard.
      if (isRefusal(error)) {
        line.refuseAll(
          () => new LockUnavailableError(name, "its release channel cannot be subscribed", error),
        );
      }
      const waiting = line.first;
      if (!waiting) return void this.#stop();
      // Not by how often it has failed: tries in between are answered, and would be storms.
      this.#to({ at: "retrying" });
      this.#nap.until(nextTry(waiting.since));
    }
  }

  /** Something is heard from now on, perhaps what this waits for; or it can queue unheard. */
  subscribed(): void {
    const { isSubscribed, mayQueue } = this.#place;
    if (!isSubscribed && !mayQueue) return;
    if (this.#state.at === "subscribing") this.start();
    else if (this.#state.at === "asking") this.#overtake(this.#state);
  }

  /** Something failed: asks again after a pause, for whoever still waits. */
  retry(failures = this.#place.health.failures): void {
    if (!this.#place.line.first) return void this.#stop();
    this.#to({ at: "retrying" });
    this.#nap.until(performance.now() + backOff(failures));
  }

  /** Waits for a wake-up, which our own release has just sent. */
  parkForWake(): void {
    this.#park(null, RECHECKS[0].period, null, true);
  }

  /** `isFreed`: by our own release, whose message comes to all who wait. */
  #park(hold: Hold | null, ttl: number, position: number | null, isFreed: boolean): void {
    this.#to({ at: "parked", hold, isFreed, isChecking: false, position });
    if (hold) this.#place.siblings?.add(this);
    this.#sleep(this.#period(ttl, position, false));
  }

  /** A place whose messages are not heard is looked at as if it were the first: its grant must be found within the window. */
  #period(ttl: number, position: number | null, isKnown: boolean): number {
    return sleep(ttl, position === null || this.#place.isSubscribed ? position : 0, isKnown);
  }

  /** Tries again after so many ms, because no message will come. */
  #pause(delay: number): void {
    this.#to({ at: "parked", hold: null, isFreed: false, isChecking: false, position: null });
    this.#sleep(Math.min(delay, this.#place.line.lastTry - performance.now()));
  }

  /**
   * After a turn of so many ms that ended for the sake of others, where no message tells them. A try right behind the
   * release would reach Redis in the same packet, and who comes now and then would never find the lock free.
   */
  rest(held: number): void {
    const delay = rest(held);
    if (delay > 0) this.#pause(delay);
    else this.start();
  }

  /** Looks again at this time at the latest. */
  lookBefore(at: number): void {
    const isTooLate = this.#nap.before(at);
    if (this.#state.at === "parked" && !this.#state.isChecking && isTooLate) this.#sleep(LEASE_TIME);
  }

  /** A message of a kind without queue: it may be free. `word`: what it says. */
  woken(word = ""): void {
    this.#wakes++;
    this.#word = word;
    if (this.#state.at !== "parked" || this.#state.hold) return;
    if (this.#rests && word !== this.#met) this.lookBefore(this.#restsUntil);
    else this.start();
  }

  /** A message may have been missed, or the connection is back: no need to sleep on. */
  lookAgain(): void {
    if (this.#state.at === "parked") this.#recheck();
    else if (this.#state.at === "asking") {
      // RACE 1: as if it had come, for what is asked just now.
      this.#wakes++;
      this.#overtake(this.#state);
    } else if (this.#state.at !== "off") this.start();
  }

  /**
   * Fair callers who came later can queue at once: who made a try meanwhile does not wait for its answer, and queues with
   * the same hold. RACE 13: with another one, and the first left, what the try has won would go to who came later.
   */
  #overtake({ hold, isQueueing }: Asking): void {
    const { line, isCrowded, mayQueue } = this.#place;
    if (!isQueueing && mayQueue && isCrowded && line.first) this.#ask(hold, line.first, true);
  }

  #rang(): void {
    const { health, room } = this.#place;
    // While the connection is away, more commands would only pile up in it. It is looked again when it comes back.
    if (room.commands.isAway) {
      health.failed(room.commands.trouble());
      this.#nap.until(performance.now() + backOff(health.failures));
    } else this.lookAgain();
  }

  #recheck(): void {
    const siblings = this.#place.siblings;
    if (!this.queued) this.start();
    else if (siblings?.isFirst(this) ?? true) this.#look();
  }

  /** Asks again for the queued hold; the same command keeps the other places of this client. */
  #look(): void {
    const { kind, line, health, room } = this.#place;
    const state = this.#state;
    const head = line.first;
    if (state.at !== "parked" || !state.hold || state.isChecking || !head) return;
    const { hold } = state;
    state.isChecking = true;
    this.#made?.interrupt();
    watchSelfWait(this.#place, head);
    const sent = now();
    health.sending();
    kind.attempt(hold, this.#place.ask(hold, "again", head, state.position)).then(
      (answer) => {
        health.answered();
        state.isChecking = false;
        // Granted by message, or left, meanwhile: the hold's own end takes care of it.
        if (this.#state !== state) return;
        if (answer.is === "owner") {
          // Ours, and no message was read; "owner by this call" needed none.
          if (answer.already) void room.hearing.subscriptions.selfTest(this.#place.channel);
          // It kept no other places. Where no grant is heard every look ends so: the next one looks at once.
          this.#nap.before(performance.now());
          hold.validity.answered(sent, answer.at);
          this.#own(hold, answer, true);
        } else if (answer.is === "held") {
          hold.validity.answered(sent, answer.at);
          state.position = answer.position;
          this.#sleep(this.#period(answer.ttl, answer.position, true));
        } else if (answer.is === "gone") {
          void room.hearing.subscriptions.selfTest(this.#place.channel);
          // A copy of the command that queued it may have run since.
          this.#place.withdraw(hold);
          // What took this place may have taken those behind it: the next one looks at once.
          this.#nap.before(performance.now());
          this.start();
        } else this.#look();
      },
      (error: unknown) => {
        health.failed(error);
        state.isChecking = false;
        if (this.#state === state) this.#sleep(backOff(health.failures));
      },
    );
  }

  /** A grant message. False: it is not for the hold that asks or waits here. */
  granted(id: string, grant: Grant): boolean {
    const state = this.#state;
    if ((state.at !== "asking" && state.at !== "parked") || state.hold?.id !== id) return false;
    if (!state.hold.fits(grant)) return true;
    this.#own(state.hold, grant, false);
    return true;
  }

  /** The last caller may have left. */
  deserted(): void {
    const { at } = this.#state;
    // Whoever comes while the last try is still under way is no old waiter.
    if (!this.#place.line.first) this.#tries = 0;
    if (this.#place.line.first || at === "asking" || at === "off") return;
    // An entry may stand for all of its patience, and be granted at its end.
    this.queued?.asks(LEASE_TIME);
    if (this.queued) this.#place.withdraw(this.queued);
    this.#stop();
  }

  #own(hold: Hold, grant: Grant, isDirect: boolean): void {
    this.#to({ at: "off" });
    this.#tries = 0;
    this.#vain = 0;
    this.#restsUntil = 0;
    hold.owned(grant);
    this.#seeker.found(hold, isDirect);
  }

  #stop(): void {
    if (this.#state.at !== "off") this.#to({ at: "off" });
    this.#seeker.nobodyLeft();
  }

  /** Until the next look; of several places only the first one looks. */
  #sleep(delay: number): void {
    if (this.#place.siblings?.isFirst(this) ?? true) this.#nap.sleep(delay);
  }

  get #nap(): Nap {
    this.#made ??= new Nap(this.#place.room.timers, () => this.#rang());
    return this.#made;
  }

  #to(state: AcquisitionState): void {
    const old = this.#state;
    assertMove(ACQUISITION_MOVES, old.at, state.at);
    this.#state = state;
    const dueAt = this.#made?.end() ?? Number.POSITIVE_INFINITY;
    if (old.at === "parked" && old.hold) this.#place.siblings?.remove(this, dueAt);
  }
}
