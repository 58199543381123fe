import {
  CLOCK_DRIFT,
  CLOCK_GRAIN,
  COMPLETION_MIN,
  LATE_AGAIN,
  LATE_TRIES,
  LOOK_PART,
  RETRY_MAX,
} from "../defaults.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import type { Exposure } from "./exposure.ts";
import type { Footing, Learn } from "./footing.ts";
import type { QuorumNode } from "./node.ts";
import type { Vote } from "./node-scripts.ts";

/** What is done for a lease, and when it ends. Times in ms. */
interface Errands {
  /** What is left of the lease. */
  left(): number;
  /** Asks one more node to take the hold, for so long. */
  join(node: QuorumNode, ttl: number): Promise<Vote>;
  /** Renews the hold at all nodes, for so long. */
  confirm(ttl: number): Promise<RenewAnswer>;
  /** The nodes that count have said that the lease is lost. */
  lost(why: "gone" | "taken"): void;
  /** There is nothing left to do: the lease is over. */
  done(): void;
}

/**
 * Keeps a lease whole: brings it to the nodes that have not got it. Some did not vote for it, because another client's vote
 * stood there or because they were down; some lost it since then. Without this the lease would stand on a bare majority to
 * its end, and one fault would be one too many. Which node counts when: see `Footing`.
 *
 * | state | what is sent | leaves it by |
 * |---|---|---|
 * | voting | nothing: a node whose vote is out is not asked again before that is heard, or given up | the last vote |
 * | whole: all nodes count | nothing, where renewals come by themselves; else a renewal when 2/5 of the lease are over | a renewal finds a node that lost the key → broken |
 * | broken | after 10, 20, 40 … 2 000 ms a joining to each missing node, then a renewal where there are guests, or 2/5 of the lease are over | all nodes count → whole |
 * | over | nothing | – |
 */
export class Completion {
  readonly footing: Footing;
  readonly #exposure: Exposure;
  readonly #errands: Errands;
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  #isOver = false;
  /** A try is under way, or votes are out. */
  #isBusy = true;
  /** A node that counts did not answer the last renewal: when that was seen, and how often it is asked again because of it. */
  #lateAt: number | null = null;
  #again = 0;
  /** The most that was ever left of the lease, and when all nodes were last asked, on the monotonic clock. */
  #span = 0;
  #askedAt = performance.now();

  constructor(footing: Footing, exposure: Exposure, errands: Errands) {
    this.footing = footing;
    this.#exposure = exposure;
    this.#errands = errands;
    footing.onLack = () => this.#broke();
    void footing.settled().then(() => {
      this.#isBusy = false;
      this.#changed();
      this.#goOn();
    });
  }

  /** A renewal is sent to all nodes now: what each node's answer changes, when it is confirmed. */
  asking(): Learn {
    this.#askedAt = performance.now();
    return this.footing.asking();
  }

  /** A renewal was confirmed, and every node has answered it or will not. */
  asked(silent: readonly QuorumNode[]): void {
    for (const node of silent) this.footing.silent(node);
    this.#changed();
    const isLate = silent.some((node) => this.footing.counts(node));
    if (!isLate) this.#again = 0;
    // It may only have been late. Where it stays silent, the next renewal is soon enough.
    else if (this.#lateAt === null) this.#again = LATE_TRIES;
    this.#lateAt = isLate ? performance.now() : null;
    if (this.#again > 0 && !this.#isBusy) this.#goOn();
  }

  /** RACE: the lease ends. From now on nothing is sent that could bring the hold to a node behind its release. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#exposure.end();
  }

  #changed(): void {
    if (!this.#isOver) this.#exposure.update(this.footing.has);
  }

  get #isWhole(): boolean {
    return this.footing.missing.length + this.footing.guests.length === 0;
  }

  #broke(): void {
    // While a try is under way the next one follows by itself, after twice as long: a node that loses every key at once is
    // not asked for ever at the same pace. Behind the last vote one follows too.
    if (this.#isBusy) return;
    if (this.footing.missing.length + this.footing.guests.length === 1) this.#tries = 0; // it was whole
    this.#goOn();
  }

  /** To be called while nothing is under way. */
  #goOn(): void {
    if (this.#isOver) return;
    const isWhole = this.#isWhole;
    if (isWhole) this.#tries = 0;
    const retry = isWhole
      ? Number.POSITIVE_INFINITY
      : Math.min(RETRY_MAX, COMPLETION_MIN * 2 ** Math.min(this.#tries++, 10));
    const delay = Math.min(retry, Math.max(this.#untilLook(), COMPLETION_MIN));
    // RACE: a renewal overtakes a vote that is still out, and that node says "gone"; then the vote is heard. Two timers would
    // go on side by side, and `end()` knows of one: the other would bring the hold to a node behind its release.
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#try(), delay).unref();
  }

  /** ms until the nodes must be asked whether they still have the hold; 0 or less: now. */
  #untilLook(): number {
    this.#span = Math.max(this.#span, this.#errands.left());
    const look = this.#askedAt + this.#span * LOOK_PART;
    const again = Math.max(this.#lateAt ?? 0, this.#askedAt) + LATE_AGAIN;
    return (this.#again > 0 ? Math.min(again, look) : look) - performance.now();
  }

  async #try(): Promise<void> {
    const left = this.#errands.left();
    if (left <= 0) {
      this.end();
      return this.#errands.done();
    }
    this.#isBusy = true;
    const joins = this.footing.missing.map((node) =>
      this.footing.joining(node, this.#errands.join(node, ttlFor(left))),
    );
    await Promise.all(joins);
    const answer = await this.#confirm();
    this.#isBusy = false;
    if (answer === null || answer.is === "renewed") return this.#goOn();
    // Whatever its guests have. They would hold up the next holder, and never count for this one.
    if (!this.#isOver) this.#errands.lost(answer.is);
  }

  /** Null: there was nothing to ask, or too few answered, so it is asked again. */
  async #confirm(): Promise<RenewAnswer | null> {
    if (this.#isOver || (this.footing.guests.length === 0 && this.#untilLook() > 0)) return null;
    if (this.#again > 0) this.#again--;
    // Also where a renewal has overtaken the joining: then the guests get what is left now.
    return this.#errands.confirm(ttlFor(this.#errands.left())).catch(() => null);
  }
}

/** The TTL that a node must set now so that its key ends with the lease, not before and not after: see `Validity`. */
const ttlFor = (left: number): number => Math.max(1, Math.floor((left + CLOCK_GRAIN) / (1 - CLOCK_DRIFT)));
