import type { AttemptAnswer, ReleaseAnswer, YieldAnswer } from "../redis/replies.ts";
import { type Instant, now } from "../util/clock.ts";
import type { Hold } from "./lease/hold.ts";
import type { Seen } from "./lock-channel.ts";
import type { AttemptOptions, Callback, Run } from "./lock-kind.ts";
import { entryTtl } from "./schedule.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A command of an acquisition that is under way: what it asks, and what was true when it was sent.
 * Protects waiters from an answer that is older than it looks: "held" is not the last word when a
 * message, or the acknowledgement of the subscription, has come between its sending and its
 * reading.
 */
export class Command implements AttemptOptions, Callback<AttemptAnswer | YieldAnswer> {
  readonly hold: Hold;
  readonly head: Waiter;
  readonly mode: AttemptOptions["mode"];
  readonly sent: Instant;
  readonly lease: number;
  readonly passes: number;
  readonly entryTtl: number;
  readonly after: Hold | null;
  readonly channel: AttemptOptions["channel"];
  readonly flag: AttemptOptions["flag"];
  readonly run: Run | null;
  nonce: string | null = null;
  /** Is every message about the lock heard since it was sent? */
  isHeard: boolean;
  /** How many messages had come that count for its answer, and had one of them led to it? */
  wakes = UNHEARD;
  isWoken = false;
  /** Is it a try for a caller that will queue? */
  readonly isFirst: boolean;
  readonly yielded: Yielded | null;
  readonly #asking: Asking;

  constructor(asking: Asking, options: CommandOptions) {
    const { hold, mode, head, flag, window, seen, isQueued, position, run, yielded } = options;
    const { terms, passes } = head;
    this.#asking = asking;
    this.hold = hold;
    this.head = head;
    this.flag = flag;
    this.mode = mode;
    this.run = run;
    this.yielded = yielded;
    this.sent = mode === "again" ? now() : hold.sent;
    this.lease = hold.lingers ? window : terms.lease;
    this.entryTtl = mode === "again" ? entryTtl(position) : 0;
    this.after = (mode !== "again" && head.batchedTry?.dependsOn?.hold) || null;
    if (head.batchedTry) head.batchedTry.hold = hold;
    this.isFirst = mode === "try" && seen !== null;
    this.isHeard = seen?.isHeard ?? false;
    // A hold that is queued is told where messages will be heard; one that looks again, where they
    // are.
    const isNamed = isQueued && mode !== "try" && (this.isHeard || mode !== "again");
    this.channel = isNamed ? seen : null;
    hold.asks(this.lease, this.sent.mono);
    // A hold can be asked for by one caller after the other. Its tokens are reserved by the command
    // that wins it, and nobody knows which that was: what all of them reserve there is for certain.
    if (passes < hold.mayPass) hold.mayPass = passes;
    this.passes = hold.mayPass;
  }

  answered(answer: AttemptAnswer | YieldAnswer): void {
    this.#asking.answered(this, answer);
  }

  failed(error: unknown): void {
    this.#asking.failed(this, error);
  }
}

/** A hold that is yielded, and how to tell what became of it; null: it ended as it should. */
export interface Yielded {
  readonly hold: Hold;
  tell(answer: ReleaseAnswer | null): void;
  fail(error: unknown): void;
}

/** The acquisition. */
interface Asking {
  answered(command: Command, answer: AttemptAnswer | YieldAnswer): void;
  failed(command: Command, error: unknown): void;
}

/** What a command is to ask. */
interface CommandOptions {
  readonly hold: Hold;
  readonly mode: AttemptOptions["mode"];
  readonly head: Waiter;
  /** What the lock's value is to say of this process. */
  readonly flag: AttemptOptions["flag"];
  /** The lease in ms, of a hold that may stay with this process. */
  readonly window: number;
  /** Where its callers hear of the lock. Null: no caller would wait. */
  readonly seen: Seen | null;
  /** Does Redis keep a queue, and grant by message? */
  readonly isQueued: boolean;
  /** In the queue, of a hold that looks again. */
  readonly position: number | null;
  /** Of a semaphore: what is asked for. */
  readonly run: Run | null;
  readonly yielded: Yielded | null;
}

/**
 * As if no message had been heard. RACE: an answer from before the acknowledgement is not the last
 * one, whenever it is read.
 */
const UNHEARD = -1;
