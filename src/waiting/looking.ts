import { FIRST_REPLY, KEEPER_REPLY } from "../defaults.ts";
import { nounOf } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import { type AttemptAnswer, unavailable } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import { CallTimer } from "../util/timers.ts";
import type { Attempt } from "./attempt.ts";
import type { Ask } from "./lock-kind.ts";
import { Parking, type ParkingPlace } from "./parking.ts";
import { backOff } from "./schedule.ts";
import type { Waiter } from "./waiter.ts";

/**
 * Looking again: a parked acquisition asks about the place that it has. Protects its callers from a message that was lost, and
 * from one that came too early: what is read while a command is under way counts for its answer.
 */
export abstract class Looking<Q extends ParkingPlace> extends Parking<Q> {
  /** The command that is under way, and whose answer is awaited. */
  protected attempt: Attempt | null = null;

  protected abstract ask(hold: Hold, mode: Ask["mode"], head: Waiter): void;
  /** The last caller may have left. */
  abstract deserted(): void;

  protected get isLooking(): boolean {
    return this.attempt !== null;
  }

  /** A message may have been missed, or the connection is back: no need to sleep on. */
  lookAgain(): void {
    const { state, hold, first } = this;
    // RACE: what was published meanwhile may be about the command that is under way. Its answer is not the last word.
    if (this.attempt) this.attempt.isHeard = false;
    if (state === "asking") this.wakes?.heard("");
    else if (state !== "parked") return;
    else if (!hold) this.start();
    else if (first && !this.attempt && (this.queue.places?.isFirst(this) ?? true)) {
      this.queue.services.timers.clear(this);
      this.queue.waits(first);
      // A listener may have aborted the caller, and with it the acquisition.
      if (this.hold === hold && this.first) this.ask(hold, "again", this.first);
    }
  }

  /** Is it between two tries, and would not hear if the lock became free? */
  get isUnsure(): boolean {
    return this.isParkedFor("subscription") || this.isParkedFor("retry");
  }

  /** Is its place nothing but a question to a holder that may have nobody inside? */
  get isQuestion(): boolean {
    return this.isParkedFor("grant") && this.isAskingOnly;
  }

  /**
   * RACE: a caller waits for an answer that Redis has not given yet, and its own place in the queue says nothing of a holder that is
   * gone: Redis is asked now, by whatever comes next, unless it is being asked already.
   */
  answerSoon(): void {
    const { state, hold, first } = this;
    if (state === "idle" || (state === "parked" && !hold)) this.start();
    // Whichever place of this client it is: it keeps all entries, and the first one goes on looking when it would have.
    else if (state === "parked" && hold && first && !this.attempt) {
      this.queue.services.timers.clear(this);
      this.ask(hold, "again", first);
    }
  }

  /** A look was answered: another client holds the lock. */
  protected lookedHeld(attempt: Attempt, { position, ttl }: AttemptAnswer & { is: "held" }): void {
    this.position = position;
    this.sleepFor(attempt, ttl);
    this.tellBusy(attempt.sent.mono);
    // RACE: a caller that would not wait has come since this look was sent: what it says may have been true only before.
    if (this.unanswered > 0) this.answerSoon();
    else this.deserted();
  }

  /** Redis did not answer a look. Those that wait for an answer are told so, the others look again after a pause. */
  protected lookFailed(error: unknown): void {
    const { health, name, kind } = this.queue;
    this.sleep(backOff(health.failures));
    this.refuseAll(() => unavailable(name, "", error, nounOf(kind)), "unanswered");
    this.deserted();
  }

  /** A look was answered "owner". `already`: it was that before. */
  protected lookedOwned(already: boolean): void {
    // Ours, and no message was read; "owner by this look" needed none.
    if (already) this.queue.channel.selfTest();
    // This look kept no other entries. Where no grant is heard every look ends so: the next hold looks at once.
    this.lookBefore(0);
  }

  /**
   * RACE: a place in the queue closes to all readers what they share. Of a writer that does not wait it would do so each time that
   * a reader is inside: it takes one when all readers have said that nobody is, and only then.
   */
  protected askFirst(attempt: Attempt): void {
    const { kind, name, services } = this.queue;
    const { hold, mode } = attempt;
    if (mode !== "queue" || !kind.sharing) {
      kind.attempt(hold, attempt, attempt);
      return;
    }
    services.keepers.question(kind.sharing.readers, name, KEEPER_REPLY).then(
      (is) => {
        // Where its callers have left meanwhile nobody needs to give anything up.
        if (this.first && (is === "idle" || is === "free")) kind.attempt(hold, attempt, attempt);
        else attempt.answered({ is: "held", at: 0, ttl: 0, position: null, told: 0 });
      },
      (error: unknown) => attempt.failed(error),
    );
  }

  /** Callers that do not wait ask a holder that may have nobody inside, and are told at once when somebody is. */
  protected nonceFor({ mode, head }: Attempt): string | null {
    const { kind, services } = this.queue;
    const { inbox, keepers, timers } = services;
    if (mode === "try") return kind.answer && head.link && keepers.aside;
    // Writers ask readers.
    const isAsked = kind.answer !== null || kind.mode === "write";
    if (mode !== "queue" || !isAsked || !this.isAskingOnly) return null;
    const nonce = keepers.nonce();
    inbox.asked.set(nonce, () => {
      this.stopAsking();
      this.deserted();
    });
    timers.set(new CallTimer(() => inbox.asked.delete(nonce)), clocks.mono.now() + 2 * FIRST_REPLY);
    return nonce;
  }
}
