import {
  CLOCK_DRIFT,
  CLOCK_GRAIN,
  EXPOSED_AFTER,
  LATE_AGAIN,
  LATE_TRIES,
  LOOK_PART,
  PROMPT_PART,
  REPAIR_MIN,
  RETRY_MAX,
} from "../defaults.ts";
import type { Hold } from "../engine/lease/hold.ts";
import type { LockManager } from "../engine/lock-manager.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import { clocks, now } from "../util/clock.ts";
import { clearTimeout, setTimeout } from "../util/real-timers.ts";
import type { NodeVote } from "./node-vote.ts";
import type { QuorumSettings } from "./options.ts";
import type { Quorum } from "./quorum.ts";
import { QuorumHold } from "./quorum-hold.ts";
import type { Granted } from "./votes.ts";

/**
 * Keeps a lease whole: brings it to the nodes that do not have it. Some did not vote for it,
 * because another client's vote stood there or because they were down; some lost it since then.
 * Protects the lease from a second fault: without this it would stand on a bare majority to its
 * end. Which node counts when: see `QuorumHold`.
 *
 * | state | what is sent | leaves it by |
 * |---|---|---|
 * | voting | nothing: a node whose vote is out is not asked again before that is heard, or given up | the last vote |
 * | whole: all nodes count | nothing, where renewals come by themselves; else a renewal when 2/5 of the lease are over | a renewal finds a node that lost the key → broken |
 * | broken | after 10, 20, 40 … 2 000 ms the lease to each missing node, then a renewal where there are late nodes, or 2/5 of the lease are over | all nodes count → whole |
 * | over | nothing | – |
 */
export class KeptQuorumHold extends QuorumHold {
  readonly #hold: Hold;
  readonly #settings: QuorumSettings;
  readonly #locks: LockManager;
  /** The token of the lease, and the last one of its passes. */
  #token = 0;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  /** "idle": between two tries, whole or broken. */
  #state: "voting" | "trying" | "idle" | "over" = "voting";
  /**
   * A node that counts did not answer the last renewal: when that was seen, and how often it is
   * asked again because of it.
   */
  #lateAt = Number.NEGATIVE_INFINITY;
  #again = 0;
  /** The most that was ever left of the lease, and when all nodes were last asked, on the monotonic clock. */
  #span = 0;
  #askedAt = 0;
  /** Runs while the lease stands on a bare majority, until that is told. */
  #exposure: NodeJS.Timeout | undefined;
  #isExposed = false;
  #has = 0;

  constructor(quorum: Quorum, hold: Hold, settings: QuorumSettings, locks: LockManager) {
    super(quorum, hold.name, hold.id);
    this.#hold = hold;
    this.#settings = settings;
    this.#locks = locks;
  }

  /** The votes came so quickly that they count as one moment. */
  get isPrompt(): boolean {
    const { mono, wall } = now();
    const { sent } = this.#hold;
    return Math.max(mono - sent.mono, wall - sent.wall) <= this.#settings.nodeTimeout * PROMPT_PART;
  }

  /**
   * The lease is granted, by these votes. RACE: a vote that comes from now on may come behind the
   * end of another client's hold. Then its token is behind those of whatever came in between, so
   * larger than ours; or it took long.
   */
  begin(token: number, votes: readonly Granted[]): void {
    this.#token = token;
    this.#last = token + this.#settings.localHandoffs;
    this.#askedAt = clocks.mono.now();
    this.granted((vote) => vote.token > token || !(votes.includes(vote) || this.isPrompt));
  }

  protected override heard(): void {
    if (this.#state !== "voting" || this.nodeVotes.some(({ isOut }) => isOut)) return;
    this.#state = "idle";
    this.#look();
    this.#goOn();
  }

  protected override renewing(): void {
    this.#askedAt = clocks.mono.now();
  }

  protected override renewed(silent: readonly NodeVote[]): void {
    for (const nodeVote of silent) nodeVote.isUnheard = true;
    this.#look();
    const isLate = silent.some(({ is }) => is === "counts");
    if (!isLate) this.#again = 0;
    // It may only have been late. Where it stays silent, the next renewal is soon enough.
    else if (this.#lateAt < 0) this.#again = LATE_TRIES;
    this.#lateAt = isLate ? clocks.mono.now() : Number.NEGATIVE_INFINITY;
    if (this.#again > 0 && this.#state === "idle") this.#goOn();
  }

  protected override broke(): void {
    // While a try is under way the next one follows by itself, after twice as long: a node that
    // loses every key at once is not asked for ever at the same pace. Behind the last vote one
    // follows too.
    if (this.#state !== "idle") return;
    if (this.#lacking === 1) this.#tries = 0; // it was whole
    this.#goOn();
  }

  /**
   * RACE: the lease ends. From now on nothing is sent that could bring the hold to a node behind
   * its release.
   */
  protected override end(): void {
    this.#state = "over";
    clearTimeout(this.#timer);
    clearTimeout(this.#exposure);
  }

  get #isOver(): boolean {
    return this.#state === "over";
  }

  /** How many nodes do not count. */
  get #lacking(): number {
    return this.nodeVotes.filter(({ is }) => is !== "counts").length;
  }

  /** To be called while idle. */
  #goOn(): void {
    const isWhole = this.#lacking === 0;
    if (isWhole) this.#tries = 0;
    const retry = isWhole
      ? Number.POSITIVE_INFINITY
      : Math.min(RETRY_MAX, REPAIR_MIN * 2 ** Math.min(this.#tries++, 10));
    const delay = Math.min(retry, Math.max(this.#untilLook(), REPAIR_MIN));
    // RACE: a renewal overtakes a vote that is still out, and that node says "gone"; then the vote
    // is heard. Two timers would go on side by side, and `end()` knows of one: the other would
    // bring the hold to a node behind its release.
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#try(), delay).unref();
  }

  /** ms until the nodes must be asked whether they still have the hold; 0 or less: now. */
  #untilLook(): number {
    this.#span = Math.max(this.#span, this.#hold.left());
    const look = this.#askedAt + this.#span * LOOK_PART;
    const again = Math.max(this.#lateAt, this.#askedAt) + LATE_AGAIN;
    return (this.#again > 0 ? Math.min(again, look) : look) - clocks.mono.now();
  }

  async #try(): Promise<void> {
    const left = this.#hold.left();
    if (left <= 0) return this.end();
    this.#state = "trying";
    await Promise.allSettled(this.all("missing").map((one) => this.#join(one, ttlFor(left))));
    const answer = await this.#confirm();
    if (this.#isOver) return;
    this.#state = "idle";
    if (answer === null || answer.is === "renewed") return this.#goOn();
    // Whatever its late nodes have. They would hold up the next holder, and never count for this one.
    const lease = this.#locks.watchdog.leaseOf(this.#hold);
    if (lease?.expire()) lease.lose(answer.is);
  }

  /** Has one more node take the hold, for so long. */
  async #join(nodeVote: NodeVote, ttl: number): Promise<void> {
    const { node } = nodeVote;
    const { state } = node;
    // Before it is written down as sent: what was never sent need not be taken back.
    if (state !== "voting") throw node.refusal(state, this.keys);
    // Written down as a vote, so that the release reaches it also when that overtakes it.
    await this.take(nodeVote, node.join(this, ttl, this.#token, this.#last));
  }

  /** Null: there was nothing to ask, or too few answered, so it is asked again. */
  async #confirm(): Promise<RenewAnswer | null> {
    if (this.#isOver || (this.all("late").length === 0 && this.#untilLook() > 0)) return null;
    if (this.#again > 0) this.#again--;
    // Also where a renewal has overtaken the joining: then the late nodes get what is left now.
    return this.confirm(ttlFor(this.#hold.left()), this.#settings.nodeTimeout).catch(() => null);
  }

  /**
   * Does it stand on a bare majority? Every race leaves its winner on one for some ms, and a node
   * may be late once: so it is told when it has lasted for a while; that it is over is told at
   * once, and only where the other was told.
   */
  #look(): void {
    if (this.#isOver) return;
    this.#has = this.all("counts").filter(({ isUnheard }) => !isUnheard).length;
    if (this.#has <= this.quorum.majority) {
      this.#exposure ??= setTimeout(() => {
        this.#isExposed = true;
        this.#tellExposed();
      }, EXPOSED_AFTER).unref();
      return;
    }
    clearTimeout(this.#exposure);
    this.#exposure = undefined;
    if (this.#isExposed) this.#tellExposed();
    this.#isExposed = false;
  }

  #tellExposed(): void {
    const { events, watchdog } = this.#locks;
    const lease = watchdog.leaseOf(this.#hold);
    if (!lease?.held || !events.hears("exposed")) return;
    const { name, kind, call } = lease;
    events.tell("exposed", { name, kind, call, has: this.#has, of: this.nodeVotes.length });
  }
}

/**
 * The TTL that a node must set now so that its key ends with the lease, not before and not after:
 * see `Hold`.
 */
const ttlFor = (left: number): number => Math.max(1, Math.floor((left + CLOCK_GRAIN) / (1 - CLOCK_DRIFT)));
