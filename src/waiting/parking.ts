import { LEASE_TIME, RECHECKS } from "../defaults.ts";
import { LockUnavailableError, nounOf } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import { type AttemptAnswer, isRefusal } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import type { Attempt } from "./attempt.ts";
import type { LockChannel } from "./lock-channel.ts";
import type { LockKind } from "./lock-kind.ts";
import type { RecheckGroup } from "./recheck-group.ts";
import type { RedisHealth } from "./redis-health.ts";
import { backOff, cooldown, nextTry, sleep } from "./schedule.ts";
import type { Stay } from "./stay.ts";
import type { Waiter } from "./waiter.ts";
import { Waiters, type WaitersQueue } from "./waiters.ts";
import { WakeFilter } from "./wake-filter.ts";

/** The lock that is waited for, and what is known of it. */
export interface ParkingPlace extends WaitersQueue {
  readonly kind: LockKind;
  readonly health: RedisHealth;
  readonly channel: LockChannel;
  /** Has each caller a place of its own in the queue of Redis? */
  readonly isSolitary: boolean;
  /** The places of this client at the lock, of whatever kind; null: there is one at the most. */
  readonly places: RecheckGroup | null;
  /** How many tries of callers that will queue are under way. */
  readonly firstTries: number;
  /** A caller waits in Redis. */
  waits(head: Waiter): void;
  /** How many callers are about to queue, as soon as the channel is heard. */
  subscribing: number;
}

type State = "idle" | "asking" | "parked" | "owned";

/** What a parked acquisition waits for, besides its timer. `release`: the message of its own process's release. */
type Reason = "grant" | "message" | "release" | "subscription" | "retry";

const MOVES: Readonly<Record<State, readonly State[]>> = {
  idle: ["asking", "parked"],
  asking: ["idle", "asking", "parked", "owned"],
  parked: ["idle", "asking", "parked", "owned"],
  owned: ["idle", "asking", "parked"],
};

/**
 * Where an acquisition stands, what it waits for, and when it tries or looks again. Protects its callers from sleeping past
 * a lock that has become free: a message that would be heard, or a timer, ends every sleep.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | idle | nothing of ours | a caller → asking; parked, where other callers of this process are about to queue before it |
 * | asking | unknown: a command is on its way | owner or a grant → owned · held → parked, or asking once more, to queue · failed → parked |
 * | parked | our hold is queued; without a hold, nothing | a grant → owned · a message, its timer, a caller that cannot wait → asking |
 * | owned | the lock is ours, or was until a moment ago | released or lost → asking, parked, idle · yielded → asking |
 *
 * A re-check goes out from parked and leaves it there, so that a grant counts meanwhile. When the last caller leaves, parked
 * goes to idle; asking waits for its answer and gives back what it brings.
 */
export abstract class Parking<Q extends ParkingPlace = ParkingPlace> extends Waiters<Q> {
  state: State = "idle";
  /** The hold that asks, waits, or owns the lock; and of one that does, what its callers have in common. Null: there was one at the most. */
  hold: Hold | null = null;
  stay: Stay | null = null;
  /** Its place among the timers of the client. Only they write these. */
  at = Number.POSITIVE_INFINITY;
  index = -1;
  protected readonly wakes = this.queue.kind.wake.by === "message" ? new WakeFilter() : null;
  /** In the queue, as far as Redis has told it. */
  protected position: number | null = null;
  /** Tries in vain since the lock was ours, for kinds without messages. */
  protected tries = 0;
  #reason: Reason = "grant";
  /** Not later than this, however long it is to sleep; told also while it is looking just now. */
  #latest = Number.POSITIVE_INFINITY;
  /** How often the state has changed: what was awaited in an earlier one counts no more. */
  #changes = 0;

  /** Asks for the first caller with a new hold. */
  abstract start(): void;
  /** A message may have been missed: no need to sleep on. */
  abstract lookAgain(): void;
  /** A caller waits for an answer that Redis gives from now on. */
  abstract answerSoon(): void;
  /** No caller is left. */
  abstract stop(): void;
  /** Is a re-check under way? */
  protected abstract readonly isLooking: boolean;

  isParkedFor(reason: Reason): boolean {
    return this.state === "parked" && this.#reason === reason;
  }

  // ---- not the owner

  /** Another client holds the lock. */
  protected held(attempt: Attempt, { ttl, position, contended, told }: AttemptAnswer & { is: "held" }): void {
    const { kind, channel, health, services } = this.queue;
    const { hold } = attempt;
    if (contended && this.isHasty(clocks.mono.now() + ttl)) {
      // No client holds it, so "another client holds it" would be wrong: tried again for as long as a first command may take.
      services.inbox.forget(hold);
      health.failure = new Error("no caller got it, because the votes were split");
      this.retryAt(clocks.mono.now() + ttl);
      return;
    }
    this.metHolder(told === 2, position !== null, channel.isHeard && !kind.sharing);
    // RACE: listeners of both events may abort a caller, or call. So the first caller is looked for behind them.
    if (this.first) this.queue.waits(this.first);
    this.tellBusy(hold.sent.mono);
    const head = this.first;
    if (position !== null && head) {
      this.park("grant", hold);
      this.position = position;
      this.sleepFor(attempt, ttl);
      // RACE: a caller that waits has come since the holder was asked for those that do not, and it was told of nobody else. Or
      // one that would not wait has come since, and the holder may be gone by now.
      if (this.unanswered > 0 || (attempt.nonce !== null && !this.isAskingOnly)) this.answerSoon();
      return;
    }
    if (position !== null) services.leave(kind, hold);
    else services.inbox.forget(hold);
    if (!head) this.stop();
    else if (this.unanswered > 0) {
      // Subscribed to meanwhile, so that tryLock() calls that keep arriving do not delay callers that wait.
      if (this.patient > 0) channel.listen();
      this.asksAgain();
      this.start();
    } else this.#waitFor(head, ttl, attempt.wakes, attempt.isFirst);
  }

  /** A hold whose messages are not heard looks as if it were the first in the queue: its grant must be found within the window. */
  protected sleepFor({ mode, isHeard }: Attempt, ttl: number): void {
    const { channel } = this.queue;
    const position = this.position === null || channel.isHeard ? this.position : 0;
    this.sleep(sleep(ttl, position, mode === "again"));
    // RACE: a grant that was published before the acknowledgement was heard by nobody.
    if (!isHeard && channel.isHeard) this.lookAgain();
  }

  /**
   * Until the lock may be free, by whatever tells of that. `ttl`: of its holder. `wakes`: how many messages had come when
   * that was asked. `isFirst`: by a caller that will queue.
   */
  #waitFor(head: Waiter, ttl: number, wakes: number, isFirst: boolean): void {
    const { kind, channel, isSolitary } = this.queue;
    if (kind.wake.by === "time") this.#pause(kind.wake.pause(this.tries++));
    else if (!channel.isHeard && !channel.mayQueue) this.subscribe(head);
    else if (isSolitary && isFirst) {
      // RACE: callers that came earlier wait for an answer, or for the subscription. All queue in order, behind the last answer.
      this.park("subscription");
      this.#sleepUntil(nextTry(head.since));
    }
    // RACE, a lost wake-up: (1) our try runs, the lock is held; (2) it is released and the message is read; (3) the
    // answer "held" is read; (4) we sleep. A message since the sending of the try leads to another try instead.
    else if (!this.wakes || (wakes !== this.wakes.count && !this.wakes.rests)) this.start();
    else {
      this.park("message");
      this.sleep(sleep(ttl, null, false));
      if (wakes !== this.wakes.count) this.lookBefore(this.wakes.restsUntil);
    }
  }

  /**
   * RACE: a lock that is released before the subscription stands tells nobody here. So: subscribe, then ask, then sleep. The
   * attempt behind which we sleep is sent after the acknowledgement.
   */
  protected subscribe(head: Waiter): void {
    const queue = this.queue;
    this.park("subscription");
    // It may take long, or hang, and no message would tell of a lock that is given back meanwhile: it is tried now and then.
    this.#sleepUntil(nextTry(head.since));
    const changes = this.#changes;
    queue.channel.ready().then(
      () => {
        if (this.#changes === changes) queue.services.subscribed();
        // Lost again already.
        if (this.#changes === changes && queue.firstTries === 0) this.start();
      },
      (error: unknown) => {
        // Tried meanwhile, and perhaps subscribing again: then that is what counts, or tries would breed tries.
        if (this.#changes !== changes) return;
        // No answer would be heard.
        this.stopAsking();
        queue.health.failed(error);
        // A refusal is final. A lost connection is not: until it is back, the lock can be waited for unheard.
        if (isRefusal(error)) {
          const what = "its channel cannot be subscribed to";
          this.refuseAll(() => new LockUnavailableError(queue.name, what, error, nounOf(queue.kind)));
        }
        // RACE: a listener that is told of a refusal may have called again: then the lock is being asked for already.
        if (this.#changes !== changes) return;
        // Not by how often it has failed: tries in between are answered, and would be storms.
        if (this.first) this.retryAt(nextTry(this.first.since));
        else this.stop();
      },
    );
  }

  /** Something failed: asks again after a pause, for the callers that still wait. */
  retry(failures = this.queue.health.failures): void {
    if (this.first) this.retryAt(clocks.mono.now() + backOff(failures));
    else this.stop();
  }

  protected retryAt(at: number): void {
    this.park("retry");
    this.#sleepUntil(at);
  }

  /** Our own release was sent, whose message comes to all that wait, this process too. */
  parkForRelease(): void {
    this.park("release");
    this.sleep(sleep(RECHECKS[0].period, null, false));
  }

  /**
   * The lock was ours for so many ms, and no message tells others of its end. A try right behind the release would reach Redis
   * in the same packet, and a process that comes now and then would never find the lock free.
   */
  coolDown(held: number): void {
    const delay = cooldown(held);
    if (delay > 0) this.#pause(delay);
    else this.start();
  }

  /** Tries again after so many ms, because no message will come. */
  #pause(delay: number): void {
    this.park("message");
    this.sleep(Math.min(delay, this.lastTry - clocks.mono.now()));
  }

  /** A message of a kind without queue: it may be free. `word`: what it says. */
  woken(word = ""): void {
    const isHeeded = this.wakes?.heard(word) ?? true;
    if (this.state !== "parked" || this.hold) return;
    if (isHeeded) this.start();
    else this.lookBefore(this.wakes?.restsUntil ?? 0);
  }

  // ---- its timer

  /** Looks again at this time at the latest. */
  lookBefore(at: number): void {
    this.#latest = Math.min(this.#latest, at);
    if (this.state === "parked" && !this.isLooking && !(this.index >= 0 && this.at <= at))
      this.sleep(LEASE_TIME);
  }

  /** For so many ms, or until the latest time that was told. Of several places only the first one looks. */
  protected sleep(delay: number): void {
    if (this.hold && this.queue.places?.isFirst(this) === false) return;
    this.#sleepUntil(Math.min(clocks.mono.now() + delay, this.#latest));
    this.#latest = Number.POSITIVE_INFINITY;
  }

  #sleepUntil(at: number): void {
    this.queue.services.timers.set(this, at);
  }

  /** Its time to look has come. */
  ring(): void {
    const { health, services } = this.queue;
    // While the connection is away, more commands would only pile up in it. It is looked again when it comes back.
    if (services.commands.isAway) {
      health.failed(services.commands.trouble());
      this.#sleepUntil(clocks.mono.now() + backOff(health.failures));
    } else this.lookAgain();
  }

  // ---- its state

  protected park(reason: Reason, hold: Hold | null = null): void {
    this.to("parked", hold);
    this.#reason = reason;
    if (reason === "subscription") this.queue.subscribing++;
    if (hold) this.queue.places?.add(this);
  }

  /** @throws Error for a move that is not in the table: a bug, which must not go on unseen. */
  protected to(state: State, hold: Hold | null = null): void {
    if (!MOVES[this.state].includes(state))
      throw new Error(`an acquisition of a lock: illegal move from ${this.state} to ${state}`);
    const wasParked = this.state === "parked";
    const wasQueued = wasParked && this.hold !== null;
    if (wasParked && this.#reason === "subscription") this.queue.subscribing--;
    // RACE: granted while its look is under way, which then keeps no entries, because its own has gone.
    const dueAt = wasQueued && this.isLooking ? 0 : this.index >= 0 ? this.at : this.#latest;
    if (this.index >= 0) this.queue.services.timers.clear(this);
    this.#latest = Number.POSITIVE_INFINITY;
    this.#changes++;
    this.state = state;
    this.hold = hold;
    this.stay = null;
    if (wasQueued) this.queue.places?.remove(this, dueAt);
  }
}
