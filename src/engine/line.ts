import { FIRST_REPLY, KEEPER_REPLY, SPIN_LAST_TRY } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import type { Timers } from "../util/timers.ts";
import type { Waiter } from "./waiter.ts";

// The callers of this process that wait, in order, and which of them have no answer yet.

/** What a line needs of its client. */
export interface LineHome {
  readonly timers: Timers;
  /** Lines with callers whose first command is unanswered. */
  readonly asking: Set<{ sweep(at: number): void }>;
  /** How many callers of this client wait. They keep the process alive. */
  waiting: number;
  /** Will callers without an answer, and none at all, be looked for soon? */
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
 * The callers of this process that one acquisition serves, first come first: a linked list, because
 * any of them may leave. Protects every caller's time to wait, and its right to an answer of its
 * own. Callers without an answer yet are known apart: of ten thousand parked callers none is looked
 * at when a tryLock() comes and goes beside them. A sweep over those without an answer bounds the
 * time for their first command; a caller gets a timer only when it has to wait.
 */
export class Line {
  first: Waiter | null = null;
  /** How many are willing to wait at all, and how many have no answer yet. Only written here. */
  waiting = 0;
  unanswered = 0;
  readonly #name: string;
  readonly #home: LineHome;
  /** Told of callers whose time is up, and of those that leave. */
  readonly #group: NonNullable<Waiter["group"]>;
  #last: Waiter | null = null;
  #firstUnanswered: Waiter | null = null;
  /** The earliest time that `lastTry` has found and that is still to come; null: it has to look. */
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
   * `asks`: the lock is being asked for, so this call shares a first command, which must be
   * answered.
   */
  add(waiter: Waiter, asks: boolean): void {
    waiter.previous = this.#last;
    if (this.#last) this.#last.next = waiter;
    else this.first = waiter;
    this.#last = waiter;
    this.#listed(waiter, asks);
    if (asks) waiter.at = waiter.since + this.#patience(waiter);
    else this.#park(waiter);
  }

  /**
   * First again: the lock was taken away from it before it had it. `asks`: it was this process's
   * own so far. RACE: a caller that would not wait is told by the command that follows, and not at
   * once that somebody else holds the lock.
   */
  putBack(waiter: Waiter, asks = false): void {
    waiter.next = this.first;
    if (this.first) this.first.previous = waiter;
    else this.#last = waiter;
    this.first = waiter;
    const isAsking = asks && waiter.wait === 0;
    if (isAsking) this.#firstUnanswered = waiter;
    this.#listed(waiter, isAsking);
    if (isAsking) waiter.at = clocks.mono.now() + this.#patience(waiter);
    else this.#home.timers.set(waiter, waiter.deadline);
  }

  /**
   * Its time to wait is up, and it has no answer yet: after all others it gets one, with the time
   * of a first command.
   */
  asksLast(waiter: Waiter): void {
    this.remove(waiter);
    if (waiter.isAsking) waiter.wait = 0;
    waiter.isAsking = false;
    this.add(waiter, true);
    waiter.at = clocks.mono.now() + FIRST_REPLY;
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
    if (waiter.index >= 0) home.timers.clear(waiter);
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

  /** It is told that the lock is busy. */
  give(waiter: Waiter): void {
    this.remove(waiter);
    if (waiter.give(null)) this.#home.gaveUp(this.#name, waiter, null);
  }

  refuse(waiter: Waiter, error: unknown): void {
    this.remove(waiter);
    if (waiter.refuse(error)) this.#home.gaveUp(this.#name, waiter, error);
  }

  /**
   * Refuses everybody, or only callers whose first command is unanswered; of these, those whose
   * time to wait is over.
   */
  refuseAll(error: () => unknown, which: "all" | "unanswered" | "hasty" = "all"): void {
    const by = which === "hasty" ? clocks.mono.now() : Number.POSITIVE_INFINITY;
    for (const waiter of which === "all" ? this : this.#withoutAnswer())
      if (waiter.deadline <= by) this.refuse(waiter, error());
  }

  // ---- callers without an answer

  /** For how many ms it waits for the answer to its first command. */
  #patience({ wait, batchedTry }: Waiter): number {
    return Math.min(this.#home.commands.replyTimeout, Math.max(batchedTry?.wait ?? wait, FIRST_REPLY));
  }

  /**
   * It has its answer, or needs none. Callers after the first one without an answer may have
   * theirs: they are few.
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

  /** Another try is made now for the callers without an answer: this one, and its time, is theirs. */
  asksAgain(): void {
    const at = clocks.mono.now();
    for (const waiter of this.#withoutAnswer()) waiter.at = at + this.#patience(waiter);
  }

  /** Is the time to wait of a caller without an answer over by then? */
  hasDeadlineBefore(by: number): boolean {
    return this.#withoutAnswer().some(({ deadline }) => deadline <= by);
  }

  /** Ends the callers whose first command is unanswered for too long. */
  sweep(at: number): void {
    for (const waiter of this.#withoutAnswer())
      if (waiter.unanswered && waiter.at <= at) this.#group.late(waiter);
  }

  /**
   * Redis answered, and the lock was not free when that was asked: a caller that would not wait is
   * told so, the others wait on. RACE: not a caller that would not wait and has come since it was
   * asked: the lock may have been given back in between.
   */
  tellBusy(asked = Number.POSITIVE_INFINITY): void {
    if (this.unanswered === 0) return;
    const at = clocks.mono.now();
    // A listener may call or abort while it is told: in rounds, over copies of the list.
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

  // ---- callers that would not wait, and do so while a holder that may have nobody inside is asked

  /**
   * The lock is held. Where the holder may have nobody inside, callers that would not wait do so for
   * a moment: for the subscription first, by which its answer comes, or for the answers of readers,
   * which have a time of their own; and for that answer from the time on when it was asked.
   * `isNext`: that comes next.
   */
  onHeld(mayBeIdle: boolean, wasAsked: boolean, isNext: boolean): void {
    if (!mayBeIdle) this.stopAsking();
    else if (wasAsked) this.#awaitHolder();
    else this.#reprieve(isNext ? KEEPER_REPLY : FIRST_REPLY);
  }

  /** One more caller that would not wait shares the question to the holder. */
  joinQuestion(waiter: Waiter): void {
    waiter.isAsking = true;
    waiter.wait = clocks.mono.now() - waiter.since + KEEPER_REPLY;
    this.add(waiter, false);
  }

  /**
   * For so many ms from now. A part of a multi-lock is told "busy" all the same: its call goes on
   * by itself.
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
   * Somebody is inside. Those after a caller that waits need not be told so: their time is up in a
   * moment.
   */
  stopAsking(): void {
    while (this.first?.isAsking) this.give(this.first);
  }

  /** Do all of them only ask? Then the holder need not hear that somebody waits. */
  get isAskingOnly(): boolean {
    let waiter = this.first;
    while (waiter?.isAsking) waiter = waiter.next;
    return waiter === null;
  }

  // ---- when to try, where no message comes

  /**
   * When to try at the latest, so that the last try of each caller comes before its time is up, and
   * not after it. Callers that would not wait come and go beside a crowd, and change nothing about
   * that.
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

/** When a caller must be tried for at the latest, to have its answer in time. */
export const lastTryOf = ({ deadline }: Waiter): number => deadline - SPIN_LAST_TRY;
