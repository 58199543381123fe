import {
  CLOCK_DRIFT,
  CLOCK_GRAIN,
  EXPOSED_AFTER,
  LATE_AGAIN,
  LATE_TRIES,
  LOOK_PART,
  REPAIR_MIN,
  RETRY_MAX,
} from "../defaults.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import type { Footprint } from "./footprint.ts";
import type { Standing } from "./standing.ts";

/** What can be done for a lease. Times in ms. */
interface RepairedLease {
  /** What is left of it. */
  left(): number;
  /** Asks one more node to take the hold, for so long. */
  join(standing: Standing, ttl: number): Promise<unknown>;
  /** Renews the hold at all nodes, for so long. */
  renew(ttl: number): Promise<RenewAnswer>;
  /** The nodes that count have said that the lease is lost. */
  lost(why: "gone" | "taken"): void;
  /** It has stood on a bare majority for a while; or, after that was told, stands on so many nodes again. */
  exposed(has: number): void;
}

/**
 * Keeps a lease whole: brings it to the nodes that do not have it. Some did not vote for it, because another client's vote
 * stood there or because they were down; some lost it since then. Protects the lease from a second fault: without this it
 * would stand on a bare majority to its end. Which node counts when: see `Footprint`.
 *
 * | state | what is sent | leaves it by |
 * |---|---|---|
 * | voting | nothing: a node whose vote is out is not asked again before that is heard, or given up | the last vote |
 * | whole: all nodes count | nothing, where renewals come by themselves; else a renewal when 2/5 of the lease are over | a renewal finds a node that lost the key → broken |
 * | broken | after 10, 20, 40 … 2 000 ms the lease to each missing node, then a renewal where there are late nodes, or 2/5 of the lease are over | all nodes count → whole |
 * | over | nothing | – |
 */
export class Repair {
  readonly #footprint: Footprint;
  readonly #majority: number;
  readonly #lease: RepairedLease;
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  #isVoting = true;
  /** A try is under way, or votes are out. */
  #isBusy = true;
  #isOver = false;
  /** A node that counts did not answer the last renewal: when that was seen, and how often it is asked again because of it. */
  #lateAt = Number.NEGATIVE_INFINITY;
  #again = 0;
  /** The most that was ever left of the lease, and when all nodes were last asked, on the monotonic clock. */
  #span = 0;
  #askedAt = performance.now();
  /** Runs while the lease stands on a bare majority, until that is told. */
  #exposure: NodeJS.Timeout | undefined;
  #isExposed = false;
  #has = 0;

  constructor(footprint: Footprint, majority: number, lease: RepairedLease) {
    this.#footprint = footprint;
    this.#majority = majority;
    this.#lease = lease;
  }

  heard(): void {
    if (!this.#isVoting || this.#footprint.standings.some(({ isOut }) => isOut)) return;
    this.#isVoting = false;
    this.#isBusy = false;
    this.#look();
    this.#goOn();
  }

  renewing(): void {
    this.#askedAt = performance.now();
  }

  renewed(silent: readonly Standing[]): void {
    for (const standing of silent) standing.isUnheard = true;
    this.#look();
    const isLate = silent.some(({ is }) => is === "counts");
    if (!isLate) this.#again = 0;
    // It may only have been late. Where it stays silent, the next renewal is soon enough.
    else if (this.#lateAt < 0) this.#again = LATE_TRIES;
    this.#lateAt = isLate ? performance.now() : Number.NEGATIVE_INFINITY;
    if (this.#again > 0 && !this.#isBusy) this.#goOn();
  }

  broke(): void {
    // While a try is under way the next one follows by itself, after twice as long: a node that loses every key at once is
    // not asked for ever at the same pace. Behind the last vote one follows too.
    if (this.#isBusy) return;
    if (this.#lacking === 1) this.#tries = 0; // it was whole
    this.#goOn();
  }

  /** RACE: the lease ends. From now on nothing is sent that could bring the hold to a node behind its release. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#exposure);
  }

  /** How many nodes do not count. */
  get #lacking(): number {
    return this.#footprint.standings.filter(({ is }) => is !== "counts").length;
  }

  /** To be called while nothing is under way. */
  #goOn(): void {
    if (this.#isOver) return;
    const isWhole = this.#lacking === 0;
    if (isWhole) this.#tries = 0;
    const retry = isWhole
      ? Number.POSITIVE_INFINITY
      : Math.min(RETRY_MAX, REPAIR_MIN * 2 ** Math.min(this.#tries++, 10));
    const delay = Math.min(retry, Math.max(this.#untilLook(), REPAIR_MIN));
    // RACE: a renewal overtakes a vote that is still out, and that node says "gone"; then the vote is heard. Two timers would
    // go on side by side, and `end()` knows of one: the other would bring the hold to a node behind its release.
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#try(), delay).unref();
  }

  /** ms until the nodes must be asked whether they still have the hold; 0 or less: now. */
  #untilLook(): number {
    this.#span = Math.max(this.#span, this.#lease.left());
    const look = this.#askedAt + this.#span * LOOK_PART;
    const again = Math.max(this.#lateAt, this.#askedAt) + LATE_AGAIN;
    return (this.#again > 0 ? Math.min(again, look) : look) - performance.now();
  }

  async #try(): Promise<void> {
    const left = this.#lease.left();
    if (left <= 0) return this.end();
    this.#isBusy = true;
    const joins = this.#footprint.all("missing").map((one) => this.#lease.join(one, ttlFor(left)));
    await Promise.allSettled(joins);
    const answer = await this.#confirm();
    this.#isBusy = false;
    if (answer === null || answer.is === "renewed") return this.#goOn();
    // Whatever its late nodes have. They would hold up the next holder, and never count for this one.
    if (!this.#isOver) this.#lease.lost(answer.is);
  }

  /** Null: there was nothing to ask, or too few answered, so it is asked again. */
  async #confirm(): Promise<RenewAnswer | null> {
    if (this.#isOver || (this.#footprint.all("late").length === 0 && this.#untilLook() > 0)) return null;
    if (this.#again > 0) this.#again--;
    // Also where a renewal has overtaken the joining: then the late nodes get what is left now.
    return this.#lease.renew(ttlFor(this.#lease.left())).catch(() => null);
  }

  /**
   * Does it stand on a bare majority? Every race leaves its winner on one for some ms, and a node may be late once: so it is
   * told when it has lasted for a while; that it is over is told at once, and only where the other was told.
   */
  #look(): void {
    if (this.#isOver) return;
    this.#has = this.#footprint.has;
    if (this.#has <= this.#majority) {
      this.#exposure ??= setTimeout(() => {
        this.#isExposed = true;
        this.#lease.exposed(this.#has);
      }, EXPOSED_AFTER).unref();
      return;
    }
    clearTimeout(this.#exposure);
    this.#exposure = undefined;
    if (this.#isExposed) this.#lease.exposed(this.#has);
    this.#isExposed = false;
  }
}

/** The TTL that a node must set now so that its key ends with the lease, not before and not after: see `Hold`. */
const ttlFor = (left: number): number => Math.max(1, Math.floor((left + CLOCK_GRAIN) / (1 - CLOCK_DRIFT)));
