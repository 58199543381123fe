import type { Hold } from "../core/lease/hold.ts";
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
import type { RenewAnswer } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { clientTimer } from "../util/client-timer.ts";
import { clocks, now } from "../util/clock.ts";
import { doubling } from "../util/random.ts";
import { clearTimeout } from "../util/real-timers.ts";
import type { NodeVote } from "./node-vote.ts";
import type { QuorumSettings } from "./options.ts";
import type { Quorum } from "./quorum.ts";
import { QuorumHold } from "./quorum-hold.ts";
import type { Granted } from "./votes.ts";

/**
 * Keeps a lease whole: brings it to the nodes that do not have it. Some did not vote for it,
 * because they had another client's vote or were down; some lost it since then. Protects the lease
 * from a second fault: without this it would have only a bare majority to its end. Which node
 * counts when: see `QuorumHold`.
 *
 * | state | what is sent | leaves it by |
 * |---|---|---|
 * | voting | nothing: a node whose vote is pending is not asked again before that is answered, or given up | the last vote |
 * | whole: all nodes count | nothing, if the watchdog renews; otherwise a renewal when 2/5 of the lease are over | a renewal finds a node that lost the key → broken |
 * | broken | after 10, 20, 40 … 2 000 ms the lease to each missing node, then a renewal if there are late nodes, or 2/5 of the lease are over | all nodes count → whole |
 * | over | nothing | – |
 */
export class KeptQuorumHold extends QuorumHold {
  readonly #hold: Hold;
  readonly #settings: QuorumSettings;
  readonly #locks: LockManager;
  /** The token of the lease, and the last one of its local hand-offs. */
  #token = 0;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  /** "idle": between two tries, whole or broken. */
  #state: "voting" | "trying" | "idle" | "over" = "voting";
  /**
   * A node that counts did not answer the last renewal: when that was noticed, and how many more
   * times to ask because of it.
   */
  #lateAt = Number.NEGATIVE_INFINITY;
  #again = 0;
  /**
   * The most that was ever left of the lease, and when all nodes were last asked, on the monotonic
   * clock.
   */
  #span = 0;
  #askedAt = 0;
  /** Runs while the lease has a bare majority, until that is reported. */
  #exposure: NodeJS.Timeout | undefined;
  #isExposed = false;
  #has = 0;

  constructor(quorum: Quorum, hold: Hold, settings: QuorumSettings, locks: LockManager) {
    super(quorum, hold.name, hold.id);
    this.#hold = hold;
    this.#settings = settings;
    this.#locks = locks;
  }

  /** Did the votes come so quickly that they count as one moment? */
  get isPrompt(): boolean {
    const { mono, wall } = now();
    const { sent } = this.#hold;
    return Math.max(mono - sent.mono, wall - sent.wall) <= this.#settings.nodeTimeout * PROMPT_PART;
  }

  /**
   * The lease is granted, by these votes. RACE: a vote that comes from now on may come after the
   * end of another client's hold. Then its token follows those of every hold in between, so it is
   * larger than ours; or the vote took long.
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
    // Perhaps the answer was only late. If the node stays silent, the next renewal is soon enough.
    else if (this.#lateAt < 0) this.#again = LATE_TRIES;
    this.#lateAt = isLate ? clocks.mono.now() : Number.NEGATIVE_INFINITY;
    if (this.#again > 0 && this.#state === "idle") this.#goOn();
  }

  protected override broke(): void {
    // While a try is under way, the next one follows anyway, after twice the delay: so a node that
    // loses every key at once is not asked endlessly at the same pace. After the last vote one
    // follows too.
    if (this.#state !== "idle") return;
    if (this.#lacking === 1) this.#tries = 0; // it was whole
    this.#goOn();
  }

  /**
   * RACE: the lease ends. From now on no command is sent that could bring the hold to a node after
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

  /** Call it only while idle. */
  #goOn(): void {
    const isWhole = this.#lacking === 0;
    if (isWhole) this.#tries = 0;
    const retry = isWhole ? Number.POSITIVE_INFINITY : doubling(this.#tries++, REPAIR_MIN, RETRY_MAX, 0);
    const delay = Math.min(retry, Math.max(this.#untilLook(), REPAIR_MIN));
    // RACE: a renewal may overtake a pending vote, and that node says "gone"; then the vote comes.
    // Two timers would run side by side, and `end()` knows only one: the other would bring the hold
    // to a node after its release.
    clearTimeout(this.#timer);
    this.#timer = clientTimer(() => void this.#try(), delay);
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
    // Even if late nodes have it. They would delay the next holder, and never count for this one.
    const lease = this.#locks.watchdog.leaseOf(this.#hold);
    if (lease?.expire()) lease.lose(answer.is);
  }

  /** Has one more node take the hold, for `ttl` ms. */
  async #join(nodeVote: NodeVote, ttl: number): Promise<void> {
    const { node } = nodeVote;
    const { state } = node;
    // Check before recording it as sent: what was never sent need not be withdrawn.
    if (state !== "voting") throw node.refusal(state, this.keys);
    // Recorded as a vote, so that the release reaches it even if that overtakes it.
    await this.take(nodeVote, node.join(this, ttl, this.#token, this.#last));
  }

  /** Null: there was no question to ask, or too few answered, so it is asked again. */
  async #confirm(): Promise<RenewAnswer | null> {
    if (this.#isOver || (this.all("late").length === 0 && this.#untilLook() > 0)) return null;
    if (this.#again > 0) this.#again--;
    // Even if a renewal has overtaken the join: then the late nodes get the remaining time now.
    return this.confirm(ttlFor(this.#hold.left()), this.#settings.nodeTimeout).catch(() => null);
  }

  /**
   * Does it have only a bare majority? Every race leaves its winner with one for some ms, and a
   * node may be late once: so it is reported only after it has lasted a while. Its end is reported
   * at once, but only if the exposure was.
   */
  #look(): void {
    if (this.#isOver) return;
    this.#has = this.all("counts").filter(({ isUnheard }) => !isUnheard).length;
    if (this.#has <= this.quorum.majority) {
      this.#exposure ??= clientTimer(() => {
        this.#isExposed = true;
        this.#tellExposed();
      }, EXPOSED_AFTER);
      return;
    }
    clearTimeout(this.#exposure);
    this.#exposure = undefined;
    const wasExposed = this.#isExposed;
    this.#isExposed = false;
    if (wasExposed) this.#tellExposed();
  }

  #tellExposed(): void {
    const { events, watchdog } = this.#locks;
    const lease = watchdog.leaseOf(this.#hold);
    if (!lease?.held || !events.hears("exposed")) return;
    const { name, kind, call } = lease;
    events.tell("exposed", { name, kind, call, has: this.#has, of: this.nodeVotes.length });
  }
}

/** The TTL that a node must set now so that its key ends exactly with the lease: see `Hold`. */
const ttlFor = (left: number): number => Math.max(1, Math.floor((left + CLOCK_GRAIN) / (1 - CLOCK_DRIFT)));
