import { FIRST_REPLY, SPIN_LAST_TRY } from "../defaults.ts";
import type { Caller, EventKind } from "../events.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Terms } from "../options.ts";
import { failing, isOurs } from "../util/stacks.ts";
import { Timer, type Timers } from "../util/timers.ts";
import type { Link } from "./lock-kind.ts";

/** What the promise of a call is settled with: what `take` makes of its lease, null, or an error. */
export interface Outcome {
  readonly take: (lease: SharedLease) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One call that wants the lock. Settled once: with a lease, with null (another client holds it), or with an error. It is its
 * own timer and its own list entry, because ten thousand of them are parked at a time.
 */
export class Waiter extends Timer implements Caller {
  readonly call: number;
  readonly kind: EventKind;
  readonly terms: Terms;
  /** ms that the caller is willing to wait, and when the call began. */
  readonly wait: number;
  readonly since = performance.now();
  /** How often the lock may have been passed on in this process before this caller gets it. */
  readonly passes: number;
  /** While its first command is unanswered: when to give up on it. Infinity afterwards. */
  answerBy = Number.POSITIVE_INFINITY;
  /** Its first command left this process late, and its limit was put off for that. */
  isHeldBack = false;
  /** The warning about waiting for one's own client was given. */
  isWarned = false;
  /** Takes the abort listener off. */
  unlisten: (() => void) | null = null;
  settled = false;
  /** Of a try that belongs to a multi-lock. */
  link: Link | null = null;
  /** The list that it stands in. Only `Waiters` writes these. */
  group: Waiters | null = null;
  next: Waiter | null = null;
  previous: Waiter | null = null;
  listed = false;
  readonly #outcome: Outcome;

  constructor(call: number, kind: EventKind, terms: Terms, wait: number, passes: number, outcome: Outcome) {
    super();
    this.call = call;
    this.kind = kind;
    this.terms = terms;
    this.wait = wait;
    this.passes = passes;
    this.#outcome = outcome;
  }

  get deadline(): number {
    return this.since + this.wait;
  }

  /** Returns whether it was still waiting. */
  give(lease: SharedLease | null): boolean {
    if (!this.#end()) return false;
    this.#outcome.resolve(lease && this.#outcome.take(lease));
    return true;
  }

  /** Returns whether it was still waiting. */
  refuse(error: unknown): boolean {
    if (!this.#end()) return false;
    // The reason of the caller's signal goes to it as it is.
    // A part of a multi-lock gets its stack from that, where the caller's line is known.
    if (isOurs(error) && this.kind !== "multi") this.#outcome.resolve(failing(error));
    else this.#outcome.reject(error);
    return true;
  }

  /** Its time is up: of its wait, or of its first command. */
  override ring(): void {
    this.group?.late(this);
  }

  #end(): boolean {
    if (this.settled) return false;
    this.settled = true;
    this.unlisten?.();
    return true;
  }
}

/** What callers that wait tell the client that they are of. */
export interface WaitersOwner {
  readonly timers: Timers;
  /** How long a first command may stay unanswered, in ms. */
  readonly replyTimeout: number;
  /** So many callers more, or fewer, are waiting in this process. */
  count(change: number): void;
  /** A caller has to wait. */
  tellWait(name: string, waiter: Waiter): void;
  /** A caller ended without the lock. `error`: what it rejects with; null: another client held it. */
  gaveUp(name: string, waiter: Waiter, error: unknown): void;
}

/**
 * The callers of this process that one acquisition serves, first come first: a linked list, because any of them may leave.
 * Each has a timer. Protects every caller's time to wait, and its right to an answer of its own. Callers without an answer
 * yet are known apart: of ten thousand parked callers none is looked at when a tryLock() comes and goes beside them.
 */
export abstract class Waiters {
  first: Waiter | null = null;
  #last: Waiter | null = null;
  /** How many are willing to wait at all. */
  #patient = 0;
  /** How many have no answer yet, and the first of these. */
  #unanswered = 0;
  #firstUnanswered: Waiter | null = null;
  /** The earliest time that `lastTry` has found and that is still to come; null: it has to look. */
  #lastTry: number | null = null;

  readonly #name: string;
  readonly #owner: WaitersOwner;

  constructor(name: string, owner: WaitersOwner) {
    this.#name = name;
    this.#owner = owner;
  }

  /** A caller's time is up: of its wait, or of its first command. */
  abstract late(waiter: Waiter): void;

  /** Is any of them willing to wait? */
  get isPatient(): boolean {
    return this.#patient > 0;
  }

  /** Has any of them no answer yet? */
  get isUnanswered(): boolean {
    return this.#unanswered > 0;
  }

  *[Symbol.iterator](): Iterator<Waiter> {
    for (let waiter = this.first; waiter; ) {
      const { next } = waiter;
      yield waiter;
      waiter = next;
    }
  }

  /** `asks`: the lock is being asked for, so this call shares a first command, which must be answered. */
  add(waiter: Waiter, asks: boolean): void {
    waiter.previous = this.#last;
    if (this.#last) this.#last.next = waiter;
    else this.first = waiter;
    this.#last = waiter;
    this.#listed(waiter);
    if (asks) {
      this.#unanswered++;
      this.#firstUnanswered ??= waiter;
      this.#mustHear(waiter, waiter.since);
    } else {
      this.#owner.timers.set(waiter, waiter.deadline);
      this.#owner.tellWait(this.#name, waiter);
    }
  }

  /** First again: the lock was taken away from it before it had it. */
  putBack(waiter: Waiter): void {
    waiter.next = this.first;
    if (this.first) this.first.previous = waiter;
    else this.#last = waiter;
    this.first = waiter;
    this.#listed(waiter);
    this.#owner.timers.set(waiter, waiter.deadline);
  }

  remove(waiter: Waiter): void {
    if (!waiter.listed) return;
    this.#answered(waiter);
    if (waiter.previous) waiter.previous.next = waiter.next;
    else this.first = waiter.next;
    if (waiter.next) waiter.next.previous = waiter.previous;
    else this.#last = waiter.previous;
    waiter.next = null;
    waiter.previous = null;
    waiter.listed = false;
    if (waiter.wait > 0) this.#patient--;
    if (lastTryOf(waiter) === this.#lastTry) this.#lastTry = null;
    this.#owner.count(-1);
    this.#owner.timers.clear(waiter);
  }

  give(waiter: Waiter, lease: SharedLease | null): void {
    this.remove(waiter);
    if (waiter.give(lease) && !lease) this.#owner.gaveUp(this.#name, waiter, null);
  }

  refuse(waiter: Waiter, error: unknown): void {
    this.remove(waiter);
    if (waiter.refuse(error)) this.#owner.gaveUp(this.#name, waiter, error);
  }

  /** Refuses everybody, or only callers whose first command is unanswered; of these, those whose time to wait is over. */
  refuseAll(error: () => unknown, which: "all" | "unanswered" | "hasty" = "all"): void {
    const by = which === "hasty" ? performance.now() : Number.POSITIVE_INFINITY;
    for (const waiter of which === "all" ? this : this.#withoutAnswer())
      if (waiter.deadline <= by) this.refuse(waiter, error());
  }

  /** Another try is made now for the callers without an answer: theirs is this one, and gets its time. */
  asksAgain(): void {
    const at = performance.now();
    for (const waiter of this.#withoutAnswer()) this.#mustHear(waiter, at);
  }

  /** Is the time to wait of a caller without an answer over by then? */
  isHasty(by: number): boolean {
    return this.#withoutAnswer().some(({ deadline }) => deadline <= by);
  }

  /**
   * Redis answered, and the lock was not free when that was asked: a caller that would not wait is told so, the others wait
   * on. RACE: not a caller that would not wait and has come since it was asked: the lock may have been given back in between.
   */
  tellBusy(asked = Number.POSITIVE_INFINITY): void {
    if (this.#unanswered === 0) return;
    const at = performance.now();
    const isTold = (waiter: Waiter): boolean =>
      waiter.answerBy !== Number.POSITIVE_INFINITY && (waiter.since <= asked || at < waiter.deadline);
    // A listener may call or abort while it is told: in rounds, over copies of the list.
    for (let round = this.#withoutAnswer().filter(isTold); round.length > 0; ) {
      for (const waiter of round) if (isTold(waiter)) this.#tell(waiter, at);
      round = this.#withoutAnswer().filter(isTold);
    }
  }

  /**
   * When to try at the latest, where no message comes: so that the last try of each caller comes before its time is up, and
   * not behind it. Callers that would not wait come and go beside a crowd, and change nothing about that.
   */
  get lastTry(): number {
    const now = performance.now();
    if (this.#lastTry !== null && this.#lastTry > now) return this.#lastTry;
    this.#lastTry = Number.POSITIVE_INFINITY;
    for (const waiter of this) this.#tryFor(waiter, now);
    return this.#lastTry;
  }

  #tell(waiter: Waiter, at: number): void {
    this.#answered(waiter);
    if (at >= waiter.deadline) this.give(waiter, null);
    else {
      this.#owner.timers.set(waiter, waiter.deadline);
      this.#owner.tellWait(this.#name, waiter);
    }
  }

  #listed(waiter: Waiter): void {
    waiter.group = this;
    waiter.listed = true;
    if (waiter.wait > 0) this.#patient++;
    if (this.#lastTry !== null) this.#tryFor(waiter, performance.now());
    this.#owner.count(1);
  }

  #tryFor(waiter: Waiter, now: number): void {
    const at = lastTryOf(waiter);
    if (at > now && this.#lastTry !== null && at < this.#lastTry) this.#lastTry = at;
  }

  #mustHear(waiter: Waiter, since: number): void {
    const { replyTimeout, timers } = this.#owner;
    waiter.answerBy = since + Math.min(replyTimeout, Math.max(waiter.link?.wait ?? waiter.wait, FIRST_REPLY));
    timers.set(waiter, waiter.answerBy);
  }

  /** It has its answer, or needs none. Callers behind the first one without an answer may have theirs: they are few. */
  #answered(waiter: Waiter): void {
    if (waiter.answerBy === Number.POSITIVE_INFINITY) return;
    waiter.answerBy = Number.POSITIVE_INFINITY;
    this.#unanswered--;
    if (this.#firstUnanswered !== waiter) return;
    let next = waiter.next;
    while (next && next.answerBy === Number.POSITIVE_INFINITY) next = next.next;
    this.#firstUnanswered = next;
  }

  #withoutAnswer(): Waiter[] {
    const found: Waiter[] = [];
    for (let waiter = this.#firstUnanswered; found.length < this.#unanswered && waiter; waiter = waiter.next)
      if (waiter.answerBy !== Number.POSITIVE_INFINITY) found.push(waiter);
    return found;
  }
}

/** When a caller must be tried for at the latest, to have its answer in time. */
export const lastTryOf = ({ deadline }: Waiter): number => deadline - SPIN_LAST_TRY;
