// Which callers may come into a hold that readers share. Protects writers from readers that come in one after the other without Redis seeing
// any of them, and from the lease of a reader that left long ago.
import { FRESH, SHARE_TIME } from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import type { Instant } from "../util/clock.ts";
import { suits } from "./handover.ts";
import { isTooLong } from "./stay.ts";

const NEVER: Instant = { mono: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };

/** What is known of those that wait for a hold to end, and what was asked for it. */
export class Admission {
  /** When the command was sent to which Redis has said last that nobody waits. */
  asked: Instant;
  /** Somebody waits, or nobody knows: for good, because the hold must come to its end. */
  isClosed: boolean;
  /** Is a join under way? */
  isAsking = false;
  readonly #hold: Hold;

  /** `asked`: null: Redis did not say that nobody waits. */
  constructor(hold: Hold, asked: Instant | null, isClosed: boolean) {
    this.#hold = hold;
    // RACE: it counts from the sending. When the answer is read a writer may have waited for long.
    this.asked = asked ?? NEVER;
    this.isClosed = isClosed;
  }

  /** May callers come in that were not there when the hold was granted, when Redis says that nobody waits? */
  get isJoinable(): boolean {
    // RACE: while one join is under way another one would be a second command about this hold, and neither would be the last word.
    return !this.isClosed && !this.isAsking;
  }

  /** Has Redis said so lately that nobody waits? Not by hearing nothing: messages may be lost. */
  isOpen(mono: number, wall: number): boolean {
    const { asked } = this;
    // A writer would say so, too. RACE: that may be lost, so it is longer, and not without end.
    const span = this.#hold.told > 0 ? FRESH : SHARE_TIME;
    return this.isJoinable && mono < asked.mono + span && wall < asked.wall + span;
  }

  /**
   * "enough": the hold suits these terms as it is. "short": when its end is raised. "no": not at all. RACE: by what was ever asked
   * for it, and not by what is known: if this process died, writers would wait for the longest lease of any caller that was inside.
   */
  suits(terms: Terms, mono: number, wall: number, window: number): "enough" | "short" | "no" {
    const hold = this.#hold;
    const left = Math.min(hold.endMono - mono, hold.endWall - wall);
    if (left <= 0 || isTooLong(hold, terms, window, mono)) return "no";
    return suits(hold, left, terms, window, false) === "enough" ? "enough" : "short";
  }

  asksAgain(): void {
    this.asked = NEVER;
  }

  close(): void {
    this.isAsking = false;
    this.isClosed = true;
  }

  /** A join that was sent then. False: the hold is nobody's. */
  answered(sent: Instant, answer: AttemptAnswer): boolean {
    this.isAsking = false;
    if (answer.is !== "owner") return false;
    const { ttl, waits } = answer;
    // RACE: behind the deadline the answer may be about a later grant of this hold, which a copy of its acquire has queued again.
    // That somebody waits counts as a recall, which may have been lost.
    const isOurs = this.#hold.renewed(sent, { ttl, waits, isTold: false });
    if (isOurs && !waits) this.asked = sent;
    else this.isClosed = true;
    return true;
  }
}
