import type { Alarms } from "../alarms.ts";
import { FIRST_REPLY } from "../defaults.ts";
import type { Tenure } from "../lease/tenure.ts";
import { type Waiter, WaiterList } from "./waiter.ts";

/** What a line tells the room that it stands in. */
export interface LineKeeper {
  readonly alarms: Alarms;
  /** How long a first command may stay unanswered, in ms. */
  readonly replyTimeout: number;
  /** So many callers more, or fewer, are waiting in this process. */
  count(change: number): void;
  /** A caller has to wait. */
  tellWait(name: string, waiter: Waiter): void;
}

/** The callers of this process in front of one lock, in order, each with its alarm. */
export class Line {
  readonly #name: string;
  readonly #keeper: LineKeeper;
  readonly #list = new WaiterList();
  #unanswered = 0;

  constructor(name: string, keeper: LineKeeper) {
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
    this.#keeper.count(1);
    if (asks) {
      this.#unanswered++;
      this.#mustHear(waiter, waiter.since);
    } else {
      this.#keeper.alarms.set(waiter, waiter.deadline);
      this.#keeper.tellWait(this.#name, waiter);
    }
  }

  /** Another try is made now for those without an answer: theirs is this one, and gets its time. */
  asksAgain(): void {
    const at = performance.now();
    for (const waiter of this.#list)
      if (waiter.answerBy !== Number.POSITIVE_INFINITY) this.#mustHear(waiter, at);
  }

  #mustHear(waiter: Waiter, since: number): void {
    waiter.answerBy = since + Math.min(this.#keeper.replyTimeout, Math.max(waiter.wait, FIRST_REPLY));
    this.#keeper.alarms.set(waiter, waiter.answerBy);
  }

  /** First again: its turn was taken away from it. */
  putBack(waiter: Waiter): void {
    this.#list.unshift(waiter);
    this.#keeper.count(1);
    this.#keeper.alarms.set(waiter, waiter.deadline);
  }

  remove(waiter: Waiter): void {
    if (!waiter.listed) return;
    this.#list.remove(waiter);
    this.#keeper.count(-1);
    this.#keeper.alarms.clear(waiter);
    if (waiter.answerBy === Number.POSITIVE_INFINITY) return;
    waiter.answerBy = Number.POSITIVE_INFINITY;
    this.#unanswered--;
  }

  give(waiter: Waiter, tenure: Tenure | null): void {
    this.remove(waiter);
    waiter.give(tenure);
  }

  refuse(waiter: Waiter, error: unknown): void {
    this.remove(waiter);
    waiter.refuse(error);
  }

  /** Is there somebody without an answer yet whose time to wait is over by then? */
  isHasty(by: number): boolean {
    for (const { answerBy, deadline } of this.#unanswered > 0 ? this.#list : [])
      if (answerBy !== Number.POSITIVE_INFINITY && deadline <= by) return true;
    return false;
  }

  /** Does somebody have no answer yet? */
  get isUnanswered(): boolean {
    return this.#unanswered > 0;
  }

  /**
   * Redis answered, and the lock was not free when that was asked: who would not wait is told so, the others wait on.
   * RACE 16: not who would not wait and has come since. It may have been given back in between.
   */
  tellBusy(asked = Number.POSITIVE_INFINITY): void {
    const at = performance.now();
    const isTold = (waiter: Waiter): boolean =>
      waiter.answerBy !== Number.POSITIVE_INFINITY && (waiter.since <= asked || at < waiter.deadline);
    // A listener may call or abort while it is told: in rounds, over copies of the list.
    while (this.#unanswered > 0) {
      const round = [...this.#list].filter(isTold);
      if (round.length === 0) return;
      for (const waiter of round) if (waiter.listed && isTold(waiter)) this.#tell(waiter, at);
    }
  }

  #tell(waiter: Waiter, at: number): void {
    waiter.answerBy = Number.POSITIVE_INFINITY;
    this.#unanswered--;
    if (at >= waiter.deadline) this.give(waiter, null);
    else {
      this.#keeper.alarms.set(waiter, waiter.deadline);
      this.#keeper.tellWait(this.#name, waiter);
    }
  }

  /** Refuses everybody, or only those whose first command is unanswered. */
  refuseAll(error: () => unknown, which: "all" | "unanswered" = "all"): void {
    for (const waiter of this.#list) {
      if (which === "all" || waiter.answerBy !== Number.POSITIVE_INFINITY) this.refuse(waiter, error());
    }
  }
}
