import type { Caller, EventKind } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Terms } from "../options.ts";
import { failing, isOurs } from "../util/stacks.ts";
import { Timer } from "../util/timers.ts";

/** Where a waiter stands. */
interface Host {
  /** Its time is up. */
  late(waiter: Waiter): void;
  /** It ends without the lock. `error`: what it rejects with; null: somebody else held it. */
  gaveUp(waiter: Waiter, error: unknown): void;
}

/**
 * One try of several that a multi-lock sends together, in order: nothing is done in Redis unless the lock of the one before it
 * is owned by that one's hold. Then the call ends with BLOCKED.
 */
export interface Link {
  readonly before: Link | null;
  /** With what it was asked for last. Null: with nothing of its own, because another caller's command tells for it too. */
  hold: Hold | null;
  /** ms that the caller of the multi-lock is willing to wait, and so for the answer; this try does not wait. */
  readonly wait: number;
}

/** Why a try of a multi-lock ends: the lock before it is not held. Nobody outside of the package sees this error. */
export const BLOCKED = new Error("the lock before it is not held");

/** How a waiter ends: with what `take` makes of its tenure, with null, or with an error. */
export interface Ending {
  readonly take: (tenure: SharedLease) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One call that wants the lock. Settled once: with a tenure, with null (somebody else holds it), or with an error. It is
 * its own alarm and its own list entry: ten thousand of them are parked at a time.
 */
export class Waiter extends Timer implements Caller {
  readonly call: number;
  readonly kind: EventKind;
  readonly terms: Terms;
  /** ms that the caller is willing to wait, and when the call began. */
  readonly wait: number;
  /** How often the lock may have been passed on in this process before this caller gets it. */
  readonly passes: number;
  readonly since = performance.now();
  /** While its first command is unanswered: when to give up on it. Infinity afterwards. */
  answerBy = Number.POSITIVE_INFINITY;
  /** The warning about waiting for one's own client was given. */
  isWarned = false;
  /** Takes the abort listener off. */
  unlisten: (() => void) | null = null;
  next: Waiter | null = null;
  previous: Waiter | null = null;
  listed = false;
  /** Of a try that belongs to a multi-lock. */
  link: Link | null = null;
  readonly #host: Host;
  readonly #take: Ending["take"];
  readonly #resolve: Ending["resolve"];
  readonly #reject: Ending["reject"];
  #settled = false;

  constructor(
    call: number,
    kind: EventKind,
    terms: Terms,
    wait: number,
    passes: number,
    host: Host,
    ending: Ending,
  ) {
    super();
    this.call = call;
    this.kind = kind;
    this.terms = terms;
    this.wait = wait;
    this.passes = passes;
    this.#host = host;
    this.#take = ending.take;
    this.#resolve = ending.resolve;
    this.#reject = ending.reject;
  }

  get settled(): boolean {
    return this.#settled;
  }

  get deadline(): number {
    return this.since + this.wait;
  }

  give(tenure: SharedLease | null): void {
    if (!this.#end()) return;
    this.#resolve(tenure && this.#take(tenure));
    if (!tenure) this.#host.gaveUp(this, null);
  }

  refuse(error: unknown): void {
    if (!this.#end()) return;
    // The reason of the caller's signal goes to it as it is.
    if (isOurs(error)) this.#resolve(failing(error));
    else this.#reject(error);
    this.#host.gaveUp(this, error);
  }

  override ring(): void {
    this.#host.late(this);
  }

  #end(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.unlisten?.();
    return true;
  }
}

/** The callers of one process in front of one lock, first come first: a linked list, because any of them may leave. */
export class WaiterList {
  #first: Waiter | null = null;
  #last: Waiter | null = null;
  /** How many are willing to wait at all. */
  patient = 0;

  get first(): Waiter | null {
    return this.#first;
  }

  *[Symbol.iterator](): Iterator<Waiter> {
    for (let waiter = this.#first; waiter; ) {
      const { next } = waiter;
      yield waiter;
      waiter = next;
    }
  }

  push(waiter: Waiter): void {
    waiter.previous = this.#last;
    if (this.#last) this.#last.next = waiter;
    else this.#first = waiter;
    this.#last = waiter;
    this.#listed(waiter);
  }

  /** Back to the front: its turn was taken away from it. */
  unshift(waiter: Waiter): void {
    waiter.next = this.#first;
    if (this.#first) this.#first.previous = waiter;
    else this.#last = waiter;
    this.#first = waiter;
    this.#listed(waiter);
  }

  remove(waiter: Waiter): void {
    if (!waiter.listed) return;
    if (waiter.previous) waiter.previous.next = waiter.next;
    else this.#first = waiter.next;
    if (waiter.next) waiter.next.previous = waiter.previous;
    else this.#last = waiter.previous;
    waiter.next = null;
    waiter.previous = null;
    waiter.listed = false;
    if (waiter.wait > 0) this.patient--;
  }

  #listed(waiter: Waiter): void {
    waiter.listed = true;
    if (waiter.wait > 0) this.patient++;
  }
}
