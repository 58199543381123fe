import type { Inspected } from "../api/lock.ts";
import type { Hold } from "../engine/lease/hold.ts";
import type { Renewal } from "../engine/lease/renewer.ts";
import { type Ask, type LockKind, type Meant, type Told, tell, type Wake } from "../engine/lock-kind.ts";
import type { LockManager } from "../engine/lock-manager.ts";
import { withoutBits } from "../redis/hold-ids.ts";
import { holding, partyOf } from "../redis/party.ts";
import { type AttemptAnswer, inspected, type ReleaseAnswer, type RenewAnswer } from "../redis/replies.ts";
import { Footprint } from "./footprint.ts";
import type { QuorumSettings } from "./options.ts";
import type { Quorum } from "./quorum.ts";
import { KeptFootprint } from "./repair.ts";
import { TokenClock } from "./token-clock.ts";
import { countHolders, countVotes, type Granted } from "./votes.ts";

/** A hold, with what was written down about it. */
type Recorded = Pick<Hold, "name" | "id"> & Partial<Pick<Hold, "record">>;

/**
 * Redlock: the holder of a lock is the hold that a majority of independent masters has written down.
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 *
 * **Tokens grow**: see `TokenClock`.
 *
 * **Votes are one majority at one moment.** Nodes vote one after the other, and votes that came
 * quickly count as simultaneous. RACE: B's vote stands at node 1, its commands to the others are
 * slow, and A has nodes 2 and 3. Node 1 forgets B's vote, and A's lease comes to stand there too: A
 * has all three. Then node 2 forgets A's hold, and B's second vote is executed. B would count two
 * votes, though never two nodes had its hold at a time, and A holds the lock by nodes 1 and 3. So
 * votes that took long are looked at once more, by `agree`: those nodes have kept the hold since
 * they voted.
 */
export class QuorumKind implements LockKind {
  readonly label = "quorumLock";
  readonly eventKind = "quorum";
  readonly protocol = "quorum";
  readonly wake: Wake;
  readonly localHandoffs: number;
  readonly longestLease: number;
  readonly yield = null;
  readonly isConfirmed = false;
  readonly recount = null;
  readonly policy = "exclusive";
  readonly shrink = null;
  readonly besides = null;
  readonly together = null;
  readonly hasStays = false;
  readonly hasTokens = true;
  readonly releaseAll = null;
  readonly answer = null;
  /** One lock a call: where a node is missing, each lock has a fate of its own. */
  readonly batch = 1;
  readonly #quorum: Quorum;
  readonly #settings: QuorumSettings;
  readonly #locks: LockManager;
  readonly #clock = new TokenClock();

  constructor(quorum: Quorum, settings: QuorumSettings, locks: LockManager) {
    this.wake = { by: "message", channel: (name) => quorum.keys.ofQuorum(name).free };
    this.localHandoffs = settings.localHandoffs;
    this.longestLease = settings.longestLease;
    this.#quorum = quorum;
    this.#settings = settings;
    this.#locks = locks;
  }

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    tell(this.#attempt(hold, ask), told);
  }

  async #attempt(hold: Hold, { lease }: Ask): Promise<AttemptAnswer> {
    const passes = this.localHandoffs;
    const wish = { lease, passes, token: this.#clock.propose(passes) };
    const footprint = new KeptFootprint(this.#quorum, hold, this.#settings, this.#locks);
    hold.record = footprint;
    const votes = footprint.ask(async (standing, state) => {
      const vote = await footprint.take(standing, standing.node.vote(state, footprint, wish));
      // Also of a node that was not needed: the next proposal is larger than what it has, and its
      // vote as good as the others'.
      if (vote.is === "owner") this.#clock.saw(vote.token, passes);
      return vote;
    }, true);
    const outcome = await this.#quorum.count(votes, (tally) => countVotes(tally, this.#settings.retryDelay));
    if (outcome.is === "held") {
      // Minority votes go back at once, and those that come late. The waiting engine knows nothing of them.
      // Waiters that a minority's votes refuse come back by themselves. RACE: votes were given up
      // here, and the nodes that hung have executed them: to a waiter they look like a held lock,
      // so that it sleeps for all of that lease.
      footprint.wakes = footprint.size >= this.#quorum.majority;
      if (footprint.size > 0) this.#locks.leave(this, hold);
      return { ...outcome, at: 0, position: null, told: 0 };
    }
    const token = await this.#agree(footprint, outcome.granted);
    hold.lasts(hold.sent, lease);
    if (hold.left() <= 0) throw new Error("the votes took longer than the lease");
    footprint.begin(token, outcome.granted);
    // `at` is the same always: no node's time is compared with another's, and the deadline counts
    // from the sending.
    return { is: "owner", at: 0, token, ttl: lease, already: false, waits: false, isTold: false };
  }

  /** The token of a majority that has voted: see above. */
  async #agree(footprint: KeptFootprint, granted: readonly Granted[]): Promise<number> {
    const tokens = granted.map((vote) => vote.token);
    const token = Math.max(...tokens);
    if (Math.min(...tokens) === token && footprint.isPrompt) return token;
    const voters = footprint.standings.filter(({ vote }) => vote?.is === "owner");
    const answers = footprint.ask(async (standing) => {
      const stored = standing.node.agree(footprint, token, token + this.localHandoffs);
      const word = await standing.follow(stored, (word) => word === "gone" || word === "taken");
      // RACE: a vote that comes from now on may come behind the end of another client's hold.
      return voters.includes(standing) ? word : "late";
    });
    await this.#quorum.count(answers, ({ answers, pending, majority }) => {
      const agreed = answers.filter((word) => word === "agreed").length;
      if (agreed >= majority) return true;
      if (agreed + pending < majority)
        throw new Error("the nodes that voted lost the lock before its token was agreed on");
      return undefined;
    });
    return token;
  }

  #footprintOf({ name, id, record }: Recorded): Footprint {
    return record instanceof Footprint ? record : new Footprint(this.#quorum, name, id);
  }

  withdraw(hold: Recorded): Promise<unknown> {
    return this.#footprintOf(hold).erase();
  }

  release(hold: Hold, told: Told<ReleaseAnswer>): void {
    tell(this.#release(hold), told);
  }

  async #release(hold: Hold): Promise<ReleaseAnswer> {
    const footprint = this.#footprintOf(hold);
    const clock = hold.token + this.localHandoffs;
    const is = await footprint.release(clock);
    // The others have not answered yet, or cannot: it is taken back there when they do.
    if (footprint.size > 0) this.#locks.leave(this, hold);
    return { is, clock: is === "released" ? clock : 0 };
  }

  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    return Promise.all(holds.map((hold) => this.confirm(hold, hold.ttl, timeout)));
  }

  confirm(hold: Recorded, ttl: number, timeout: number): Promise<RenewAnswer> {
    return this.#footprintOf(hold).confirm(ttl, timeout);
  }

  async inspect(name: string): Promise<Inspected> {
    const found = await this.#holder(name);
    if (!found) return inspected(null, null);
    const { holder, token, ttl } = found;
    return inspected(holding(partyOf(holder, token), null, { token, remaining: ttl }), null);
  }

  holder(name: string): Promise<Inspected> {
    return this.inspect(name);
  }

  shownAs({ id }: Hold): string {
    return id;
  }

  /**
   * Only the holder's: if votes were taken from clients that are just asking, one node could be
   * counted by two of them.
   */
  async forceRelease(name: string, _label: string | null, { holder, token }: Meant): Promise<number> {
    const found = await this.#holder(name);
    if (!found || (token !== null && token !== found.token)) return 0;
    if (holder !== null && holder !== withoutBits(found.holder)) return 0;
    const footprint = new Footprint(this.#quorum, name, found.holder);
    return (await footprint.release(found.token + this.localHandoffs)) === "released" ? 1 : 0;
  }

  /** Rejects when that cannot be known. */
  #holder(name: string) {
    const footprint = new Footprint(this.#quorum, name, "");
    return this.#quorum.count(
      footprint.ask(({ node }) => node.inspect(footprint)),
      countHolders,
    );
  }
}
