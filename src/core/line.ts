import { SERVED } from "../api/give-up.ts";
import { FIRST_REPLY } from "../defaults.ts";
import type { Kept } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import { LinkedList } from "../util/linked-list.ts";
import type { Port } from "./port.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The callers of one place, first come first served.
 *
 * One rule says when a caller is told "busy": when Redis has answered a command that was sent after
 * the caller came, or when another caller of this process has the lock. Until then the caller is
 * *unanswered*: its timer is the time limit of that answer. After that its timer is its own wait.
 */
export class Line extends LinkedList<Waiter> {
  /** How many are willing to wait, and how many are unanswered. Only written here. */
  waiting = 0;
  unanswered = 0;
  /**
   * Of results that callers share: the last run that is known to the place, for callers that have asked
   * for none. 0: none.
   */
  run = 0;
  readonly #name: string;
  readonly #port: Port;

  constructor(name: string, port: Port) {
    super();
    this.#name = name;
    this.#port = port;
  }

  // ---- callers come and go

  override add(caller: Waiter): void {
    super.add(caller);
    this.#added(caller);
  }

  /** First again: it lost the lock before it received it. */
  putBack(caller: Waiter): void {
    this.addFirst(caller);
    this.#added(caller);
    this.#port.timers.set(caller, caller.deadline);
  }

  #added(caller: Waiter): void {
    const port = this.#port;
    if (caller.waits) this.waiting++;
    port.waiting++;
    if (!port.isSweeping) port.sweepSoon();
  }

  remove(caller: Waiter): void {
    if (!this.delete(caller)) return;
    const port = this.#port;
    this.#answered(caller);
    port.timers.clear(caller);
    if (caller.waits) this.waiting--;
    if (--port.waiting === 0 && !port.isSweeping) port.sweepSoon();
  }

  /** Null: busy. */
  refuse(caller: Waiter, error: unknown): void {
    this.remove(caller);
    if (caller.refuse(error)) this.#port.gaveUp(this.#name, caller, error);
  }

  refuseAll(error: () => unknown): void {
    for (const caller of this) this.refuse(caller, error());
  }

  // ---- answers

  /** Redis must answer a command for this caller, within the time of its wait or of a first reply. */
  awaitAnswer(
    caller: Waiter,
    mono: number,
    patience = Math.max(caller.batchedTry?.wait ?? caller.wait, FIRST_REPLY),
  ): void {
    const { timers, commands } = this.#port;
    if (!caller.isUnanswered) this.unanswered++;
    caller.isUnanswered = true;
    timers.set(caller, mono + Math.min(commands.replyTimeout, patience));
  }

  /** One more command is sent for those that are unanswered: its time limit replaces the former one. */
  awaitAgain(): void {
    const mono = clocks.mono.now();
    for (const caller of this.#allUnanswered()) this.awaitAnswer(caller, mono);
  }

  /** It waits: its time is its own wait. */
  park(caller: Waiter): void {
    this.#port.timers.set(caller, caller.deadline);
    if (!caller.isAsking) this.#port.tellWait(this.#name, caller);
  }

  #answered(caller: Waiter): void {
    if (!caller.isUnanswered) return;
    caller.isUnanswered = false;
    this.unanswered--;
  }

  /**
   * The first unanswered caller. They are the last ones to have come, so the search for it
   * begins there: a tryLock() that comes and goes beside ten thousand parked callers examines none.
   */
  get #firstUnanswered(): Waiter | null {
    let first: Waiter | null = null;
    for (let left = this.unanswered, caller = this.last; caller && left > 0; caller = caller.previous) {
      if (!caller.isUnanswered) continue;
      first = caller;
      left--;
    }
    return first;
  }

  *#allUnanswered(): Iterable<Waiter> {
    for (
      let caller = this.#firstUnanswered, next: Waiter | null;
      caller && this.unanswered > 0;
      caller = next
    ) {
      next = caller.next;
      if (caller.isUnanswered) yield caller;
    }
  }

  /** The command failed. `isHasty`: only for those whose wait is over. */
  refuseUnanswered(error: () => unknown, isHasty = false): void {
    if (this.unanswered === 0) return;
    const by = isHasty ? clocks.mono.now() : Number.POSITIVE_INFINITY;
    for (const caller of this.#allUnanswered()) if (caller.deadline <= by) this.refuse(caller, error());
  }

  /**
   * The lock was not free for a command sent at `sent`. RACE: a caller that does not wait, and came
   * after that, needs another answer: the lock may have been given back in between.
   */
  tellBusy(sent = Number.POSITIVE_INFINITY): void {
    if (this.unanswered === 0) return;
    const mono = clocks.mono.now();
    for (
      let caller = this.#firstUnanswered, next: Waiter | null;
      caller && this.unanswered > 0;
      caller = next
    ) {
      next = caller.next;
      const isOver = mono >= caller.deadline;
      if (!caller.isUnanswered || (isOver && caller.since > sent)) continue;
      if (isOver) this.refuse(caller, null);
      else {
        this.#answered(caller);
        this.park(caller);
      }
    }
  }

  // ---- results that callers share

  /** The first run that one of them has waited for, or may have. 0: none. */
  get seen(): number {
    let first = 0;
    for (const { terms } of this) {
      const seen = terms.result?.seen || this.run;
      if (seen > 0 && (first === 0 || seen < first)) first = seen;
    }
    return first;
  }

  /** A run is under way, for a command that was sent then. Callers that come later may come after its end. */
  saw(token: number, sent: number): void {
    this.run = token;
    for (const { terms, since } of this)
      if (terms.result?.seen === 0 && since <= sent) terms.result.seen = token;
  }

  /**
   * For callers that came before the command was sent: what was forgotten meanwhile is for no other.
   * `stored`: when the result was, at the earliest, on the monotonic clock.
   */
  serve(kept: Kept, sent: number, stored: number): void {
    this.run = 0;
    for (const caller of this) {
      const { since } = caller;
      const { result } = caller.terms;
      if (!result || since > sent) continue;
      const hasWaited = result.seen > 0 ? kept.token >= result.seen : since <= stored;
      if (kept.rest <= 0 && !hasWaited) continue;
      try {
        const value = result.found(kept);
        this.remove(caller);
        if (caller.serve(value)) this.#port.gaveUp(this.#name, caller, SERVED);
      } catch (error) {
        this.refuse(caller, error);
      }
    }
  }

  // ---- callers that do not wait, where the holder may be idle

  /** Do all of them only ask? Then the holder need not be notified of a waiter. */
  get isAskingOnly(): boolean {
    let caller = this.first;
    while (caller?.isAsking) caller = caller.next;
    return caller === null;
  }

  /**
   * The holder was in use for callers that came up to then. Asking callers after one that waits are
   * answered by their time.
   */
  refuseAsking(by = Number.POSITIVE_INFINITY): void {
    while (this.first?.isAsking && this.first.since <= by) this.refuse(this.first, null);
  }

  /**
   * The holder may be idle: callers that do not wait do so for `ms` more, in the queue, so that it
   * gives the lock back. A member of a multi-lock does not: its call continues by itself.
   */
  reprieve(ms: number): void {
    const mono = clocks.mono.now();
    for (const caller of this.#allUnanswered()) {
      if (caller.batchedTry) caller.batchedTry.mayBeIdle = true;
      else if (caller.wait === 0) {
        this.waiting++;
        caller.isAsking = true;
        caller.wait = mono - caller.since + ms;
      }
    }
  }

  /**
   * The holder was asked, or knows that a caller waits: it has `ms` for its answer. RACE: one that only
   * asks may stand after one that waits, and had the longer time until the subscription.
   */
  awaitHolder(ms: number): void {
    const mono = clocks.mono.now();
    for (const caller of this) {
      if (!caller.isAsking) continue;
      caller.wait = mono - caller.since + ms;
      this.#port.timers.set(caller, caller.deadline);
    }
  }
}
