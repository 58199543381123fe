import type { AttemptAnswer, YieldAnswer } from "../redis/replies.ts";
import { type Instant, now } from "../util/clock.ts";
import type { Hold } from "./lease/hold.ts";
import type { AttemptOptions, Callback, LockKind, Run } from "./lock-kind.ts";
import type { Release } from "./release.ts";
import { entryTtl } from "./schedule.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A command that asks Redis for a hold, and what was true when it was sent. Its answer counts only
 * while its place awaits it (R3).
 */
export class Attempt implements AttemptOptions, Callback<AttemptAnswer | YieldAnswer> {
  readonly sent: Instant;
  readonly lease: number;
  readonly passes: number;
  readonly reserves: number;
  readonly entryTtl: number;
  readonly after: Hold | null;
  readonly channel: AttemptOptions["channel"];
  readonly flag: AttemptOptions["flag"];
  readonly run: Run | null;
  /** The token of the first run that one of the callers has waited for. 0: none, or it is a lock. */
  readonly seen: number;
  /** A message says that what the callers wait for is there. */
  isReady = false;
  /** Is it a try for a caller that will queue? */
  readonly isFirst: boolean;
  /** Has every message been received since it was sent? */
  isHeard: boolean;

  constructor(
    private readonly place: Asker,
    readonly hold: Hold,
    readonly mode: AttemptOptions["mode"],
    readonly head: Waiter,
    channel: NonNullable<AttemptOptions["channel"]>,
    /** Of a yield: how the old hold ends. */
    readonly release: Release | null,
    readonly nonce: string | null,
  ) {
    const isAgain = mode === "again";
    const { terms, batchedTry, passes } = head;
    this.sent = isAgain || mode === "grant" ? now() : hold.sent;
    // If this process died, others would wait for an unused lock.
    this.lease = hold.lingers ? place.context.stays.window : terms.lease;
    this.run = place.run;
    this.entryTtl = isAgain ? entryTtl(place.position) : 0;
    this.isFirst = mode === "try" && place.line.waiting > 0;
    this.isHeard = channel.isHeard;
    const isTold = place.kind.hasStays && channel.isHeard;
    this.flag = hold.lingers ? 2 : isTold ? 1 : 0;
    // Queueing tells Redis which channel receives the hold's messages. A re-check names it only if
    // the channel is subscribed to.
    this.channel = mode !== "try" && (channel.isHeard || !isAgain) ? channel : null;
    this.after = (!isAgain && batchedTry?.dependsOn?.hold) || null;
    if (batchedTry) batchedTry.hold = hold;
    hold.asks(this.lease, this.sent.mono);
    // Several callers in turn can ask for one hold. The command that wins it reserves its tokens,
    // and it is unknown which command won: only what all of them reserve is certain.
    if (passes < hold.mayPass) hold.mayPass = passes;
    this.passes = hold.mayPass;
    // Reserving costs the server a twentieth of a free pair, so a command does that only if another
    // caller waits here, or may come while the hold is queued.
    const isLikely = head.next !== null || terms.linger > 0 || isAgain || mode === "yield";
    this.reserves = isLikely || !place.kind.hasStays ? this.passes : 0;
    if (this.reserves < hold.reserved) hold.reserved = this.reserves;
    this.seen = terms.result ? place.line.seen : 0;
  }

  answered(answer: AttemptAnswer | YieldAnswer): void {
    this.place.answered(this, answer);
  }

  failed(error: unknown): void {
    this.place.failed(this, error);
  }
}

/** The place that sends it. */
interface Asker {
  readonly context: { readonly stays: { readonly window: number } };
  readonly kind: Pick<LockKind, "hasStays">;
  readonly line: { readonly waiting: number; readonly seen: number };
  /** In the queue, as Redis last reported it. */
  readonly position: number | null;
  readonly run: Run | null;
  answered(attempt: Attempt, answer: AttemptAnswer | YieldAnswer): void;
  failed(attempt: Attempt, error: unknown): void;
}
