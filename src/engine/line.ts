import { FIRST_REPLY, KEEPER_REPLY, SPIN_LAST_TRY } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import type { Timers } from "../util/timers.ts";
import type { Waiter } from "./waiter.ts";

// The callers of this process that wait, in order, and which of them are still unanswered.

/** What a line needs of its client. */
export interface LineHome {
  readonly timers: Timers;
  /** Lines with callers whose first command is unanswered. */
  readonly asking: Set<{ sweep(at: number): void }>;
  /** How many callers of this client wait. They keep the process alive. */
  waiting: number;
  /** Is a sweep for unanswered callers scheduled? */
  readonly isSweeping: boolean;
  sweepSoon(): void;
  /** How long a command may stay unanswered, in ms. */
  readonly commands: { readonly replyTimeout: number };
  /** A caller has to wait. */
  tellWait(name: string, waiter: Waiter): void;
  /** A caller ended without the lock. `error`: what it rejects with; null: it was busy. */
  gaveUp(name: string, waiter: Waiter, error: unknown): void;
}

/**
 * The callers of this process that one acquisition serves, first come first served: a linked list,
 * because any of them may leave. Protects every caller's time to wait, and its right to an answer
 * of its own. Unanswered callers are tracked apart, so a tryLock() that comes and goes beside ten
 * thousand parked callers examines none of them. A sweep over the unanswered callers limits the
 * time for their first command; a caller gets a timer only when it has to wait.
 */
export class Line {
  first: Waiter | null = null;
  /** How many are willing to wait at all, and how many are unanswered. Only written here. */
  waiting = 0;
  unanswered = 0;
  readonly #name: string;
  readonly #home: LineHome;
  /** Notified of callers whose time is over, and of those that leave. */
  readonly #group: NonNullable<Waiter["group"]>;
  #last: Waiter | null = null;
  #firstUnanswered: Waiter | null = null;
  /**
   * The earliest time that `lastTry` has found and that has not passed; null: it must be computed.
   */
  #lastTry: number | null = null;

  constructor(name: string, home: LineHome, group: NonNullable<Waiter["group"]>) {
    this.#name = name;
    this.#home = home;
    this.#group = group;
  }

  *[Symbol.iterator](): Iterator<Waiter> {
    for (let waiter = this.first; waiter; ) {
      const { next } = waiter;
      yield waiter;
      waiter = next;
    }
  }

  // ---- callers come

  /**
   * `asks`: the lock is being requested, so this call shares a first command, which must be
   * answered.
   */
  add(waiter: Waiter, asks: boolean): void {
    waiter.previous = this.#last;
    if (this.#last) this.#last.next = waiter;
    else this.first = waiter;
    this.#last = waiter;
    this.#listed(waiter, asks);
    if (asks) waiter.until = waiter.since + this.#patience(waiter);
    else this.#park(waiter);
  }

  /**
   * First again: it lost the lock before it received it. `asks`: until now this process owned the
   * lock. RACE: a caller that does not wait is then answered by the following command, and not at
   * once with "busy".
   */
  putBack(waiter: Waiter, asks = false): void {
    waiter.next = this.first;
    if (this.first) this.first.previous = waiter;
    else this.#last = waiter;
    this.first = waiter;
    const isAsking = asks && waiter.wait === 0;
    if (isAsking) this.#firstUnanswered = waiter;
    this.#listed(waiter, isAsking);
    if (isAsking) waiter.until = clocks.mono.now() + this.#patience(waiter);
    else this.#home.timers.set(waiter, waiter.deadline);
  }

  /**
   * Its time to wait is over, and it is still unanswered: it moves to the end and gets a first
   * command's time.
   */
  asksLast(waiter: Waiter): void {
    this.remove(waiter);
    if (waiter.isAsking) waiter.wait = 0;
    waiter.isAsking = false;
    this.add(waiter, true);
    waiter.until = clocks.mono.now() + FIRST_REPLY;
  }

  #listed(waiter: Waiter, asks: boolean): void {
    const home = this.#home;
    waiter.group = this.#group;
    waiter.listed = true;
    if (waiter.wait > 0) this.waiting++;
    if (this.#lastTry !== null) this.#tryFor(waiter, clocks.mono.now());
    home.waiting++;
    if (!home.isSweeping) home.sweepSoon();
    if (!asks) return;
    this.#firstUnanswered ??= waiter;
    if (this.unanswered++ === 0) home.asking.add(this);
    waiter.unanswered = true;
  }

  /** It has to wait. */
  #park(waiter: Waiter): void {
    this.#home.timers.set(waiter, waiter.deadline);
    if (!waiter.isAsking) this.#home.tellWait(this.#name, waiter);
  }

  // ---- and go

  remove(waiter: Waiter): void {
    if (!waiter.listed) return;
    const home = this.#home;
    if (waiter.unanswered) this.#answered(waiter);
    home.timers.clear(waiter);
    if (waiter.previous) waiter.previous.next = waiter.next;
    else this.first = waiter.next;
    if (waiter.next) waiter.next.previous = waiter.previous;
    else this.#last = waiter.previous;
    waiter.next = null;
    waiter.previous = null;
    waiter.listed = false;
    if (waiter.wait > 0) this.waiting--;
    if (this.#lastTry !== null && lastTryOf(waiter) === this.#lastTry) this.#lastTry = null;
    if (--home.waiting === 0 && !home.isSweeping) home.sweepSoon();
  }

  /** Reports "busy" to the caller. */
  give(waiter: Waiter): void {
    this.remove(waiter);
    if (waiter.give(null)) this.#home.gaveUp(this.#name, waiter, null);
  }

  refuse(waiter: Waiter, error: unknown): void {
    this.remove(waiter);
    if (waiter.refuse(error)) this.#home.gaveUp(this.#name, waiter, error);
  }

  /**
   * Refuses all callers; or only unanswered ones; or only unanswered ones whose time to wait is
   * over.
   */
  refuseAll(error: () => unknown, which: "all" | "unanswered" | "hasty" = "all"): void {
    const by = which === "hasty" ? clocks.mono.now() : Number.POSITIVE_INFINITY;
    for (const waiter of which === "all" ? this : this.#withoutAnswer())
      if (waiter.deadline <= by) this.refuse(waiter, error());
  }

  // ---- unanswered callers

  /** How many ms it waits for the answer to its first command. */
  #patience({ wait, batchedTry }: Waiter): number {
    return Math.min(this.#home.commands.replyTimeout, Math.max(batchedTry?.wait ?? wait, FIRST_REPLY));
  }

  /**
   * It has its answer, or needs none. Callers after the first unanswered one may be answered: they
   * are few.
   */
  #answered(waiter: Waiter): void {
    waiter.unanswered = false;
    if (--this.unanswered === 0) this.#home.asking.delete(this);
    if (this.#firstUnanswered !== waiter) return;
    let next = this.unanswered === 0 ? null : waiter.next;
    while (next && !next.unanswered) next = next.next;
    this.#firstUnanswered = next;
  }

  #withoutAnswer(): Waiter[] {
    const found: Waiter[] = [];
    for (let waiter = this.#firstUnanswered; found.length < this.unanswered && waiter; waiter = waiter.next)
      if (waiter.unanswered) found.push(waiter);
    return found;
  }

  /**
   * Another try is made now for the unanswered callers: its time limit replaces that of the earlier
   * one.
   */
  asksAgain(): void {
    const at = clocks.mono.now();
    for (const waiter of this.#withoutAnswer()) waiter.until = at + this.#patience(waiter);
  }

  /** Will the time to wait of an unanswered caller be over by then? */
  hasDeadlineBefore(by: number): boolean {
    return this.#withoutAnswer().some(({ deadline }) => deadline <= by);
  }

  /** Ends the callers whose first command has been unanswered for too long. */
  sweep(at: number): void {
    for (const waiter of this.#withoutAnswer())
      if (waiter.unanswered && waiter.until <= at) this.#group.late(waiter);
  }

  /**
   * Redis answered that the lock was not free: a caller that does not wait gets "busy", the others
   * keep waiting. RACE: except a caller that does not wait and came after the command was sent: the
   * lock may have been given back in between.
   */
  tellBusy(asked = Number.POSITIVE_INFINITY): void {
    if (this.unanswered === 0) return;
    const at = clocks.mono.now();
    // Listeners may make or abort calls meanwhile: so this works in rounds, over copies of the
    // list.
    for (let isDone = false; !isDone; ) {
      isDone = true;
      for (const waiter of this.#withoutAnswer()) {
        if (!waiter.unanswered || (waiter.since > asked && at >= waiter.deadline)) continue;
        isDone = false;
        this.#answered(waiter);
        if (at >= waiter.deadline) this.give(waiter);
        else this.#park(waiter);
      }
    }
  }

  // ---- callers that do not wait, except for a moment while a possibly idle holder is asked

  /**
   * The lock is held. If the holder may be idle, callers that do not wait do so for a moment. First
   * for the subscription that brings its answer, or for the answers of readers, which have their
   * own time limit; then for the holder's answer, counted from the question. `isNext`: the question
   * comes next.
   */
  onHeld(mayBeIdle: boolean, wasAsked: boolean, isNext: boolean): void {
    if (!mayBeIdle) this.stopAsking();
    else if (wasAsked) this.#awaitHolder();
    else this.#reprieve(isNext ? KEEPER_REPLY : FIRST_REPLY);
  }

  /** One more caller that does not wait shares the question to the holder. */
  joinQuestion(waiter: Waiter): void {
    waiter.isAsking = true;
    waiter.wait = clocks.mono.now() - waiter.since + KEEPER_REPLY;
    this.add(waiter, false);
  }

  /**
   * Waits `ms` from now. A member of a multi-lock gets "busy" all the same: its call continues by
   * itself.
   */
  #reprieve(ms: number): void {
    for (const waiter of this.#withoutAnswer()) {
      if (waiter.batchedTry) waiter.batchedTry.mayBeIdle = true;
      else if (waiter.wait === 0) {
        waiter.isAsking = true;
        waiter.wait = clocks.mono.now() - waiter.since + ms;
        this.waiting++;
      }
    }
  }

  #awaitHolder(): void {
    for (let waiter = this.first; waiter?.isAsking; waiter = waiter.next) {
      waiter.wait = clocks.mono.now() - waiter.since + KEEPER_REPLY;
      this.#home.timers.set(waiter, waiter.deadline);
    }
  }

  /**
   * A caller is inside. Asking callers after one that waits need no answer here: their time ends in
   * a moment.
   */
  stopAsking(): void {
    while (this.first?.isAsking) this.give(this.first);
  }

  /** Do all of them only ask? Then the holder need not be notified of a waiter. */
  get isAskingOnly(): boolean {
    let waiter = this.first;
    while (waiter?.isAsking) waiter = waiter.next;
    return waiter === null;
  }

  // ---- when to try without messages

  /**
   * The latest time to try, so that the last try of each caller comes before its time is over.
   * Callers that do not wait come and go beside a crowd without changing it.
   */
  get lastTry(): number {
    const now = clocks.mono.now();
    if (this.#lastTry !== null && this.#lastTry > now) return this.#lastTry;
    this.#lastTry = Number.POSITIVE_INFINITY;
    for (const waiter of this) this.#tryFor(waiter, now);
    return this.#lastTry;
  }

  #tryFor(waiter: Waiter, now: number): void {
    const at = lastTryOf(waiter);
    if (at > now && this.#lastTry !== null && at < this.#lastTry) this.#lastTry = at;
  }
}

/** The latest time to try for a caller so that it has its answer in time. */
export const lastTryOf = ({ deadline }: Waiter): number => deadline - SPIN_LAST_TRY;
