import type { AttemptOptions, Callback } from "../core/lock-kind.ts";
import { entryTtl } from "../core/schedule.ts";
import type { AttemptAnswer, ReleaseAnswer, YieldAnswer } from "../redis/replies.ts";
import { type Instant, now } from "../util/clock.ts";
import type { Hold } from "./lease/hold.ts";
import type { Seen } from "./lock-channel.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A command of an acquisition that is under way: its request, and what was true when it was sent.
 * Protects waiters from outdated answers: "held" is not the last word when a message, or the
 * acknowledgement of the subscription, came between sending the command and reading its answer.
 */
export class Command implements AttemptOptions, Callback<AttemptAnswer | YieldAnswer> {
  readonly hold: Hold;
  readonly head: Waiter;
  readonly mode: AttemptOptions["mode"];
  readonly sent: Instant;
  readonly lease: number;
  readonly passes: number;
  readonly reserves: number;
  readonly entryTtl: number;
  readonly after: Hold | null;
  readonly channel: AttemptOptions["channel"];
  readonly flag: AttemptOptions["flag"];
  readonly run = null;
  nonce: string | null = null;
  /** Has every message about the lock been received since it was sent? */
  isHeard: boolean;
  /**
   * How many messages that count for its answer had come when it was sent, and whether one of them
   * caused it.
   */
  wakes = UNHEARD;
  isWoken = false;
  /** Is it a try for a caller that will queue? */
  readonly isFirst: boolean;
  readonly yielded: Yielded | null;
  readonly #asking: Asking;

  constructor(asking: Asking, options: CommandOptions) {
    const { hold, mode, head, flag, window, seen, isQueued, position, yielded } = options;
    const { terms, passes } = head;
    this.#asking = asking;
    this.hold = hold;
    this.head = head;
    this.flag = flag;
    this.mode = mode;
    this.yielded = yielded;
    this.sent = mode === "again" ? now() : hold.sent;
    this.lease = hold.lingers ? window : terms.lease;
    this.entryTtl = mode === "again" ? entryTtl(position) : 0;
    this.after = (mode !== "again" && head.batchedTry?.dependsOn?.hold) || null;
    if (head.batchedTry) head.batchedTry.hold = hold;
    this.isFirst = mode === "try" && seen !== null;
    this.isHeard = seen?.isHeard ?? false;
    // Queueing tells Redis which channel receives the hold's messages. A re-check names it only if
    // the channel is subscribed to.
    const isNamed = isQueued && mode !== "try" && (this.isHeard || mode !== "again");
    this.channel = isNamed ? seen : null;
    hold.asks(this.lease, this.sent.mono);
    // Several callers in turn can ask for one hold. The command that wins it reserves its tokens,
    // and it is unknown which command won: only what all of them reserve is certain.
    if (passes < hold.mayPass) hold.mayPass = passes;
    this.passes = hold.mayPass;
    this.reserves = this.passes;
    if (this.reserves < hold.reserved) hold.reserved = this.reserves;
  }

  answered(answer: AttemptAnswer | YieldAnswer): void {
    this.#asking.answered(this, answer);
  }

  failed(error: unknown): void {
    this.#asking.failed(this, error);
  }
}

/** A hold that is yielded, and the functions that report how it ended; null: as it should. */
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

/** The request of a command. */
interface CommandOptions {
  readonly hold: Hold;
  readonly mode: AttemptOptions["mode"];
  readonly head: Waiter;
  /** What the lock's value should say about this process. */
  readonly flag: AttemptOptions["flag"];
  /** The lease in ms of a hold that may stay with this process. */
  readonly window: number;
  /** Where its callers receive the lock's messages. Null: no caller would wait. */
  readonly seen: Seen | null;
  /** Does Redis keep a queue, and grant by message? */
  readonly isQueued: boolean;
  /** Of a hold that re-checks: its position in the queue. */
  readonly position: number | null;
  readonly yielded: Yielded | null;
}

/**
 * As if no message had been received. RACE: an answer from before the acknowledgement is not the
 * last one, whenever it is read.
 */
const UNHEARD = -1;
