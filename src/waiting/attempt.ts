import type { Hold } from "../lease/hold.ts";
import type { AttemptAnswer, ReleaseAnswer, YieldAnswer } from "../redis/replies.ts";
import { type Instant, now } from "../util/clock.ts";
import type { LockChannel } from "./lock-channel.ts";
import type { Ask, Told } from "./lock-kind.ts";
import { PermitHold } from "./permit-hold.ts";
import { entryTtl } from "./schedule.ts";
import type { Waiter } from "./waiter.ts";

/** A hold that is yielded, and how to tell what became of it; null: it ended as it should. */
export interface Yielded {
  readonly hold: Hold;
  tell(answer: ReleaseAnswer | null): void;
  fail(error: unknown): void;
}

/** The acquisition. */
interface Asking {
  answered(attempt: Attempt, answer: AttemptAnswer | YieldAnswer): void;
  failed(attempt: Attempt, error: unknown): void;
}

/**
 * A command of an acquisition that is under way: what it asks, and what was true when it was sent. Protects waiters from an
 * answer that is older than it looks: "held" is not the last word when a message, or the acknowledgement of the
 * subscription, has come between its sending and its reading.
 */
export class Attempt implements Ask, Told<AttemptAnswer | YieldAnswer> {
  readonly hold: Hold;
  readonly head: Waiter;
  readonly mode: Ask["mode"];
  readonly sent: Instant;
  readonly lease: number;
  readonly passes: number;
  readonly entryTtl: number;
  readonly after: Hold | null;
  readonly channel: Ask["channel"];
  readonly told: Ask["told"];
  nonce: string | null = null;
  /** Is every message about the lock heard since it was sent? */
  isHeard: boolean;
  /** How many messages had come that count for its answer, and had one of them led to it? */
  wakes = UNHEARD;
  isWoken = false;
  /** Is it a try for a caller that will queue? */
  isFirst = false;
  yielded: Yielded | null = null;
  readonly #asking: Asking;

  /**
   * `told`: what the lock's value is to say of this process. `window`: the lease, in ms, of a hold that may stay with it.
   * `channel`: null where no caller would wait. `position`: in the queue, of a hold that looks again.
   */
  constructor(
    asking: Asking,
    hold: Hold,
    mode: Ask["mode"],
    head: Waiter,
    told: Ask["told"],
    window: number,
    channel: LockChannel | null,
    position: number | null,
  ) {
    const { terms, passes } = head;
    this.#asking = asking;
    this.hold = hold;
    this.head = head;
    this.told = told;
    this.mode = mode;
    this.sent = mode === "again" ? now() : hold.sent;
    this.lease = hold.lingers ? window : terms.lease;
    this.entryTtl = mode === "again" ? entryTtl(position) : 0;
    this.after = (mode !== "again" && head.link?.before?.hold) || null;
    if (head.link) head.link.hold = hold;
    this.isHeard = channel?.isHeard ?? false;
    this.channel = channel && mode !== "try" ? channel.told(mode !== "again") : null;
    hold.asks(this.lease, this.sent.mono);
    // A hold can be asked for by one caller after the other. Its tokens are reserved by the command that wins it, and nobody
    // knows which that was: what all of them reserve there is for certain.
    if (passes < hold.mayPass) hold.mayPass = passes;
    this.passes = hold.mayPass;
  }

  get pooled(): PermitHold["asked"] | null {
    const { record } = this.hold;
    return record instanceof PermitHold ? record.asked : null;
  }

  answered(answer: AttemptAnswer | YieldAnswer): void {
    this.#asking.answered(this, answer);
  }

  failed(error: unknown): void {
    this.#asking.failed(this, error);
  }
}

/** As if no message had been heard. RACE: an answer from before the acknowledgement is not the last one, whenever it is read. */
const UNHEARD = -1;
