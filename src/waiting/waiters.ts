import { FIRST_REPLY } from "../defaults.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Timers } from "../util/timers.ts";
import { lastTry, lastTryOf } from "./schedule.ts";
import { type Waiter, WaiterList } from "./waiter.ts";

/** What a line tells the room that it stands in. */
export interface WaitersOwner {
  readonly timers: Timers;
  /** How long a first command may stay unanswered, in ms. */
  readonly replyTimeout: number;
  /** So many callers more, or fewer, are waiting in this process. */
  count(change: number): void;
  /** A caller has to wait. */
  tellWait(name: string, waiter: Waiter): void;
}

/** The callers of this process in front of one lock, in order, each with its alarm. */
export class Waiters {
  readonly #name: string;
  readonly #keeper: WaitersOwner;
  readonly #list = new WaiterList();
  /** Those without an answer yet, in order: of ten thousand parked callers none, beside a tryLock() one. */
  readonly #unanswered = new Set<Waiter>();
  /** The earliest time that `lastTry()` has found and that is still to come; null: it has to look. */
  #lastTry: number | null = null;

  constructor(name: string, keeper: WaitersOwner) {
    this.#name = name;
    this.#keeper = keeper;
  }

  get first(): Waiter | null {
    return this.#list.first;
  }

  /** Is anybody willing to wait at all? */
  get isPatient(): boolean {
    return this.#list.patient > 0;
  }

  [Symbol.iterator](): Iterator<Waiter> {
    return this.#list[Symbol.iterator]();
  }

  /** `asks`: the lock is being asked for, so this call shares a first command, which must be answered. */
  add(waiter: Waiter, asks: boolean): void {
    this.#list.push(waiter);
    this.#joined(waiter);
    this.#keeper.count(1);
    if (asks) {
      this.#unanswered.add(waiter);
      this.#mustHear(waiter, waiter.since);
    } else {
      this.#keeper.timers.set(waiter, waiter.deadline);
      this.#keeper.tellWait(this.#name, waiter);
    }
  }

  /** Another try is made now for those without an answer: theirs is this one, and gets its time. */
  asksAgain(): void {
    const at = performance.now();
    for (const waiter of this.#unanswered) this.#mustHear(waiter, at);
  }

  #mustHear(waiter: Waiter, since: number): void {
    const wait = waiter.link?.wait ?? waiter.wait;
    waiter.answerBy = since + Math.min(this.#keeper.replyTimeout, Math.max(wait, FIRST_REPLY));
    this.#keeper.timers.set(waiter, waiter.answerBy);
  }

  /** First again: its turn was taken away from it. */
  putBack(waiter: Waiter): void {
    this.#list.unshift(waiter);
    this.#joined(waiter);
    this.#keeper.count(1);
    this.#keeper.timers.set(waiter, waiter.deadline);
  }

  remove(waiter: Waiter): void {
    if (!waiter.listed) return;
    this.#list.remove(waiter);
    if (lastTryOf(waiter) === this.#lastTry) this.#lastTry = null;
    this.#keeper.count(-1);
    this.#keeper.timers.clear(waiter);
    if (this.#unanswered.delete(waiter)) waiter.answerBy = Number.POSITIVE_INFINITY;
  }

  #joined(waiter: Waiter): void {
    if (this.#lastTry !== null && lastTryOf(waiter) > performance.now())
      this.#lastTry = Math.min(this.#lastTry, lastTryOf(waiter));
  }

  /**
   * When to try at the latest, where no message comes: so that the last try of each caller comes before its time is up, and
   * not behind it. Callers that would not wait come and go beside a crowd, and change nothing about that.
   */
  get lastTry(): number {
    if (this.#lastTry === null || this.#lastTry <= performance.now()) this.#lastTry = lastTry(this.#list);
    return this.#lastTry;
  }

  give(waiter: Waiter, tenure: SharedLease | null): void {
    this.remove(waiter);
    waiter.give(tenure);
  }

  refuse(waiter: Waiter, error: unknown): void {
    this.remove(waiter);
    waiter.refuse(error);
  }

  /** Is there somebody without an answer yet whose time to wait is over by then? */
  isHasty(by: number): boolean {
    for (const { deadline } of this.#unanswered) if (deadline <= by) return true;
    return false;
  }

  /** Does somebody have no answer yet? */
  get isUnanswered(): boolean {
    return this.#unanswered.size > 0;
  }

  /**
   * Redis answered, and the lock was not free when that was asked: who would not wait is told so, the others wait on.
   * RACE 16: not who would not wait and has come since. It may have been given back in between.
   */
  tellBusy(asked = Number.POSITIVE_INFINITY): void {
    const at = performance.now();
    const isTold = (waiter: Waiter): boolean =>
      this.#unanswered.has(waiter) && (waiter.since <= asked || at < waiter.deadline);
    // A listener may call or abort while it is told: in rounds, over copies of the list.
    while (this.#unanswered.size > 0) {
      const round = [...this.#unanswered].filter(isTold);
      if (round.length === 0) return;
      for (const waiter of round) if (isTold(waiter)) this.#tell(waiter, at);
    }
  }

  #tell(waiter: Waiter, at: number): void {
    waiter.answerBy = Number.POSITIVE_INFINITY;
    this.#unanswered.delete(waiter);
    if (at >= waiter.deadline) this.give(waiter, null);
    else {
      this.#keeper.timers.set(waiter, waiter.deadline);
      this.#keeper.tellWait(this.#name, waiter);
    }
  }

  /** Refuses everybody, or only those whose first command is unanswered; of these, those whose time to wait is over. */
  refuseAll(error: () => unknown, which: "all" | "unanswered" | "hasty" = "all"): void {
    const by = which === "hasty" ? performance.now() : Number.POSITIVE_INFINITY;
    for (const waiter of which === "all" ? this.#list : this.#unanswered)
      if (waiter.deadline <= by) this.refuse(waiter, error());
  }
}
