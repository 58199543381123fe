import { FIRST_REPLY, RECHECKS, SPIN_LAST_TRY, WAKE_SPREAD } from "../defaults.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { isSet } from "../util/timers.ts";
import type { Attempt } from "./attempt.ts";
import type { Grant, Hold } from "./lease/hold.ts";
import type { LockKind } from "./lock-kind.ts";
import { type Home, Place, UNHEARD } from "./place.ts";
import { cooldown, sleep } from "./schedule.ts";
import { APART, ASKING, type State } from "./states.ts";
import type { Waiter } from "./waiter.ts";
import { WakeFilter } from "./wake-filter.ts";

/**
 * The place of all callers at a lock that Redis does not queue: it tries, and sleeps until a message
 * says that the lock may be free, or for a time. Protects its callers from sleeping while the lock is
 * free, and other processes from one that takes it back at once.
 */
export class TryPlace extends Place {
  /** Unsuccessful tries since the lock was ours, for kinds without messages. */
  tries = 0;
  /** Which messages count. Null: there are none. */
  readonly #wakes: WakeFilter | null;
  /** How many had come when the last try was sent, and whether one of them caused it. */
  #heard = 0;
  #isWoken = false;
  /**
   * The next time to try for a caller so that it has its answer in time: for one in the line, or for one
   * that has left it. Kept, because a line may be long.
   */
  #lastTry = Number.POSITIVE_INFINITY;

  constructor(resource: Home, kind: LockKind) {
    super(resource, kind);
    this.#wakes = kind.wake.by === "message" ? new WakeFilter() : null;
  }

  /**
   * RACE: the last answer was "held", but it may be old, because no message says when the lock is
   * freed. So a caller that barely waits needs another one.
   */
  protected override isKnown(caller: Waiter): boolean {
    const isPausing = this.state === SLEEPING || this.state === COOLING;
    return super.isKnown(caller) || (isPausing && caller.wait > SPIN_LAST_TRY);
  }

  /** Nor does it know of the time in which this process leaves the lock to others. */
  protected override isUnasked(caller: Waiter, mono: number): boolean {
    return this.state === COOLING || super.isUnasked(caller, mono);
  }

  override ask(): void {
    const { line, context, kind, name } = this;
    const { first } = line;
    if (!first) {
      this.stop();
      return;
    }
    const wakes = this.#wakes;
    // RACE: an answer from before the acknowledgement of the subscription is not the last one,
    // whenever it is read.
    this.#heard = this.resource.isHeard && wakes ? wakes.count : -1;
    this.#isWoken = wakes?.asks() ?? false;
    const hold = context.newHold(kind, name, this, first.terms.label);
    this.to(TRYING, hold);
    this.send(this.attemptFor("try", hold, first, UNHEARD, null));
  }

  // ---- it is not free

  /** Waits until it may be free. */
  waits(first: Waiter, answer: AttemptAnswer & { is: "held" }): void {
    const { kind, resource } = this;
    const wakes = this.#wakes;
    if (kind.wake.by === "time") this.#pause(kind.wake.pause(this.tries++));
    else if (!wakes || !resource.isHeard) this.subscribe(first);
    // RACE, a lost wake-up: (1) our try runs, the lock is held; (2) it is released and the message
    // is read; (3) the answer "held" is read; (4) we sleep. So a message that came after the try
    // was sent leads to another try instead.
    else if (this.#heard !== wakes.count && !wakes.rests) this.ask();
    else {
      this.#sleepFor(SLEEPING, sleep(answer.ttl, null, false));
      if (this.#heard !== wakes.count) this.wakeBefore(wakes.restsUntil);
    }
  }

  override join(caller: Waiter): void {
    if (this.kind.wake.by === "time") this.#mayBeLast(caller, clocks.mono.now());
    super.join(caller);
  }

  #mayBeLast(caller: Waiter, at: number): void {
    const last = lastTryOf(caller);
    if (last > at && last < this.#lastTry) this.#lastTry = last;
  }

  /** Tries again after `ms`, because no message will come, and in time for each of its callers. */
  #pause(ms: number): void {
    const at = clocks.mono.now();
    if (this.#lastTry <= at) {
      this.#lastTry = Number.POSITIVE_INFINITY;
      for (const caller of this.line) this.#mayBeLast(caller, at);
    }
    this.#sleepFor(SLEEPING, Math.min(ms, this.#lastTry - at));
  }

  #sleepFor(state: State, ms: number): void {
    this.to(state);
    this.sleepUntil(clocks.mono.now() + ms);
  }

  wakeBefore(at: number): void {
    if (!isSet(this) || this.at > at) this.sleepUntil(at);
  }

  /** What the try found. */
  met(attempt: Attempt, answer: AttemptAnswer & { is: "held" }): void {
    this.#wakes?.met(attempt.sent.mono, this.#isWoken, answer);
  }

  /** The lock may be free. `word`: the message's text. */
  woken(word = ""): void {
    const isHeeded = this.#wakes?.heard(word) ?? true;
    if (this.attempt || this.isOurs || !this.line.first) return;
    if (isHeeded) this.ask();
    else this.wakeBefore(this.#wakes?.restsUntil ?? 0);
  }

  // ---- it is ours, and given back

  override take(grant: Grant, sent: Instant | null, flag: Attempt["flag"]): void {
    this.tries = 0;
    this.#wakes?.owned();
    super.take(grant, sent, flag);
  }

  protected override askAfter(hold: Hold): void {
    const { kind, line, resource } = this;
    if (!line.first) this.stop();
    else if (kind.wake.by === "time") {
      // A try right after the release would reach Redis in the same packet, and a process that
      // polls would never find the lock free.
      const delay = cooldown(clocks.mono.now() - hold.ownedAt);
      if (delay > 0) this.#sleepFor(COOLING, delay);
      else this.ask();
    }
    // The message of our own release wakes us together with the others.
    else if (resource.isHeard) this.#sleepFor(RELEASED, sleep(RECHECKS[0].period, null, false));
    else this.ask();
  }

  /** Nothing was released, so no message is sent, and we may be waiting for it. */
  unreleased(): void {
    this.woken();
  }
}

/** The latest time to try for a caller so that it has its answer in time. */
const lastTryOf = ({ deadline }: Waiter): number => deadline - SPIN_LAST_TRY;

/** A try is under way. */
const TRYING: State = {
  ...ASKING,
  word: "trying",
  held(p: TryPlace, answer, attempt) {
    const { line, resource, context, health } = p;
    const { hold } = attempt;
    p.met(attempt, answer);
    context.inbox.forget(hold);
    if (answer.contended && isDue(p, clocks.mono.now() + answer.ttl)) {
      // No client holds it, so "another client holds it" would be wrong: retries for at most the
      // time of a first command.
      health.failure = new Error("no caller got it, because the votes were split");
      p.rest(clocks.mono.now() + answer.ttl);
      return;
    }
    if (line.first) context.selfWait.look(resource, line.first);
    line.tellBusy(hold.sent.mono);
    const { first } = line;
    if (!first) p.stop();
    else if (line.unanswered > 0) {
      if (line.waiting > 0) resource.listen();
      line.awaitAgain();
      p.ask();
    } else p.waits(first, answer);
  },
  // Its kinds grant nothing by message: this one is no script's.
  granted() {},
  // RACE: a message published meanwhile may be newer than the answer to the try.
  gap: (p: TryPlace) => p.woken(),
  // A caller that comes while the last try is still under way has not waited before.
  left(p: TryPlace) {
    if (!p.line.first) p.tries = 0;
  },
};

/** Nothing of ours is in Redis; callers wait for a message, or for a time. */
const SLEEPING: State = {
  ...APART,
  word: "sleeping",
  came(p: TryPlace, caller) {
    if (caller.isUnanswered) p.ask();
    else if (p.kind.wake.by === "time" && lastTryOf(caller) > clocks.mono.now())
      p.wakeBefore(lastTryOf(caller));
  },
};

/** The same, after our own release. */
const RELEASED: State = {
  ...SLEEPING,
  word: "released",
  // RACE: a try right after our own release would keep other processes out while callers keep
  // coming here. So it waits for the message like all others; the message may be lost.
  came(p: TryPlace, caller) {
    p.wakeBefore(clocks.mono.now() + WAKE_SPREAD);
    awaitLater(p, caller);
  },
};

/** The same, for kinds without messages. */
const COOLING: State = {
  ...SLEEPING,
  word: "cooling",
  // RACE: a caller that barely waits would take the lock back before other processes can find it free.
  came: awaitLater,
};

/** Its command is sent at the place's time: an answer may take as long as if it came then. */
function awaitLater({ line, at }: TryPlace, caller: Waiter): void {
  if (caller.isUnanswered) line.awaitAnswer(caller, at, Math.max(caller.deadline - at, FIRST_REPLY));
}

/** Is the wait of a caller over by then that has no answer yet? */
function isDue({ line }: TryPlace, by: number): boolean {
  for (const { isUnanswered, deadline } of line) if (isUnanswered && deadline <= by) return true;
  return false;
}
