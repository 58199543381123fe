import type { Inspected } from "../api/lock.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { Renewal } from "../core/lease/renewer.ts";
import {
  type Ask,
  type Callback,
  type Leavable,
  type LockKind,
  type Meant,
  tell,
  type Wake,
} from "../core/lock-kind.ts";
import { withoutBits } from "../redis/hold-ids.ts";
import { holding, partyOf } from "../redis/party.ts";
import { type AttemptAnswer, inspected, type ReleaseAnswer, type RenewAnswer } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import type { QuorumSettings } from "./options.ts";
import type { Quorum } from "./quorum.ts";
import { QuorumHold } from "./quorum-hold.ts";
import { KeptQuorumHold } from "./repair.ts";
import { TokenClock } from "./token-clock.ts";
import { countHolders, countVotes, type Granted } from "./votes.ts";

/**
 * Redlock: the hold that a majority of independent masters has stored owns a lock.
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 *
 * **Tokens grow**: see `TokenClock`.
 *
 * **Votes are one majority at one moment.** Nodes vote one after the other, and votes that came
 * quickly count as simultaneous. RACE: B has the vote of node 1, its commands to the others are
 * slow, and A has nodes 2 and 3. Node 1 forgets B's vote, and takes A's lease too: A has all three.
 * Then node 2 forgets A's hold, and B's second vote runs. B would count two votes, though two nodes
 * never had its hold at the same time, and A holds the lock by nodes 1 and 3. So votes that took
 * long are checked once more, by `agree`: those nodes have kept the hold since they voted.
 */
export class QuorumKind implements LockKind {
  readonly label = "quorumLock";
  readonly eventKind = "quorum";
  readonly protocol = "quorum";
  readonly wake: Wake;
  readonly localHandoffs: number;
  readonly longestLease: number;
  readonly isConfirmed = false;
  readonly policy = "exclusive";
  readonly hasStays = false;
  readonly hasTokens = true;
  /** One lock a call: where a node is missing, each lock has its own outcome. */
  readonly batch = 1;
  readonly #quorum: Quorum;
  readonly #settings: QuorumSettings;
  readonly #locks: LockManager;
  readonly #clock = new TokenClock();
  /** What the nodes have answered to the attempts. */
  readonly #asked = new WeakMap<object, QuorumHold>();

  constructor(quorum: Quorum, settings: QuorumSettings, locks: LockManager) {
    this.wake = { by: "message", channel: (name) => quorum.keys.ofQuorum(name).free };
    this.localHandoffs = settings.localHandoffs;
    this.longestLease = settings.longestLease;
    this.#quorum = quorum;
    this.#settings = settings;
    this.#locks = locks;
  }

  attempt(ask: Ask): void {
    tell(this.#attempt(ask), ask);
  }

  async #attempt({ hold, lease }: Ask): Promise<AttemptAnswer> {
    const passes = this.localHandoffs;
    const wish = { lease, passes, token: this.#clock.propose(passes) };
    const quorumHold = new KeptQuorumHold(this.#quorum, hold, this.#settings, this.#locks);
    this.#asked.set(hold, quorumHold);
    const votes = quorumHold.ask(async (nodeVote, state) => {
      const vote = await quorumHold.take(nodeVote, nodeVote.node.vote(state, quorumHold, wish));
      // Also for a node that was not needed: the next proposal is then larger than its token, and
      // its vote as good as the others'.
      if (vote.is === "owner") this.#clock.saw(vote.token, passes);
      return vote;
    }, true);
    const outcome = await this.#quorum.count(votes, (tally) => countVotes(tally, this.#settings.retryDelay));
    if (outcome.is === "held") {
      // Minority votes are withdrawn at once, and so are late ones. The waiting engine does not
      // know of them. Waiters that a minority's votes refuse come back by themselves. RACE: votes
      // may have been given up here while the hanging nodes ran them. To a waiter they look like a
      // held lock, so it would sleep for that whole lease: then the withdrawal must wake it.
      quorumHold.wakes = quorumHold.size >= this.#quorum.majority;
      if (quorumHold.size > 0) this.#locks.leave(this, hold);
      return { ...outcome, at: 0, position: null, flag: 0 };
    }
    const token = await this.#agree(quorumHold, outcome.granted);
    hold.lasts(hold.sent, lease);
    if (hold.left() <= 0) throw new Error("the votes took longer than the lease");
    quorumHold.begin(token, outcome.granted);
    // `at` is always the same: no node's time is compared with another's, and the deadline counts
    // from the sending.
    return { is: "owner", at: 0, token, ttl: lease, already: false, waits: false, isTold: false };
  }

  /** The token of a majority that has voted: see above. */
  async #agree(quorumHold: KeptQuorumHold, granted: readonly Granted[]): Promise<number> {
    const tokens = granted.map((vote) => vote.token);
    const token = Math.max(...tokens);
    if (Math.min(...tokens) === token && quorumHold.isPrompt) return token;
    const voters = quorumHold.nodeVotes.filter(({ vote }) => vote?.is === "owner");
    const answers = quorumHold.ask(async (nodeVote) => {
      const stored = nodeVote.node.agree(quorumHold, token, token + this.localHandoffs);
      const word = await nodeVote.follow(stored, (word) => word === "gone" || word === "taken");
      // RACE: a vote that comes from now on may come after the end of another client's hold.
      return voters.includes(nodeVote) ? word : "late";
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

  #quorumHoldOf(hold: Leavable): QuorumHold {
    return this.#asked.get(hold) ?? new QuorumHold(this.#quorum, hold.name, hold.id);
  }

  withdraw(hold: Leavable): Promise<unknown> {
    return this.#quorumHoldOf(hold).erase();
  }

  release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    tell(this.#release(hold), callback);
  }

  async #release(hold: Hold): Promise<ReleaseAnswer> {
    const quorumHold = this.#quorumHoldOf(hold);
    const clock = hold.token + this.localHandoffs;
    const is = await quorumHold.release(clock);
    // The others have not answered yet, or cannot: the hold is withdrawn there when they do.
    if (quorumHold.size > 0) this.#locks.leave(this, hold);
    return { is, clock: is === "released" ? clock : 0 };
  }

  renew(holds: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]> {
    return Promise.all(holds.map(({ hold, ttl }) => this.confirm(hold, ttl, timeout)));
  }

  confirm(hold: Leavable, ttl: number, timeout: number): Promise<RenewAnswer> {
    return this.#quorumHoldOf(hold).confirm(ttl, timeout);
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
   * Only the holder's votes: if votes of clients that are still asking were taken away, two of them
   * could count the same node.
   */
  async forceRelease(name: string, _label: string | null, { holder, token }: Meant): Promise<number> {
    const found = await this.#holder(name);
    if (!found || (token !== null && token !== found.token)) return 0;
    if (holder !== null && holder !== withoutBits(found.holder)) return 0;
    const quorumHold = new QuorumHold(this.#quorum, name, found.holder);
    return (await quorumHold.release(found.token + this.localHandoffs)) === "released" ? 1 : 0;
  }

  /** Rejects when the holder cannot be determined. */
  #holder(name: string) {
    const quorumHold = new QuorumHold(this.#quorum, name, "");
    return this.#quorum.count(
      quorumHold.ask(({ node }) => node.inspect(quorumHold)),
      countHolders,
    );
  }
}
