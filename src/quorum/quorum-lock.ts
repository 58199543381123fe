import { PROMPT_PART } from "../defaults.ts";
import { withoutBits } from "../hold-ids.ts";
import type { Hold } from "../lease/hold.ts";
import type { Renewal } from "../lease/renewer.ts";
import type { AttemptAnswer, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { now } from "../util/clock.ts";
import { type Ask, type LockKind, type Told, tell, type Wake } from "../waiting/lock-kind.ts";
import { Footprint } from "./footprint.ts";
import type { Vote } from "./node-commands.ts";
import type { QuorumSettings } from "./options.ts";
import type { Quorum } from "./quorum.ts";
import { Repair } from "./repair.ts";
import { TokenClock } from "./token-clock.ts";
import { countHolders, countVotes, type Granted } from "./votes.ts";

/** What the kind asks its client for. */
interface QuorumHost {
  /** Takes a hold back behind, again and again until every node has answered. */
  withdraw(kind: LockKind, hold: Hold): void;
  /** The nodes have said that the hold's lease is lost. */
  lost(hold: Hold, why: "gone" | "taken"): void;
  /** A lease stands on a bare majority, on so many of so many nodes; or does no more. */
  exposed(hold: Hold, has: number, of: number): void;
}

/** A hold, with what was written down about it. */
type Recorded = Pick<Hold, "name" | "id"> & Partial<Pick<Hold, "record">>;

/**
 * Redlock: the holder of a lock is the hold that a majority of independent masters has written down.
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 *
 * **Tokens grow**: see `TokenClock`.
 *
 * **Votes are one majority at one moment.** Nodes vote one after the other, and votes that came quickly count as
 * simultaneous. RACE: B's vote stands at node 1, its commands to the others are slow, and A has nodes 2 and 3. Node 1
 * forgets B's vote, and A's lease comes to stand there too: A has all three. Then node 2 forgets A's hold, and B's second
 * vote is executed. B would count two votes, though never two nodes had its hold at a time, and A holds the lock by nodes 1
 * and 3. So votes that took long are looked at once more, by `agree`: those nodes have kept the hold since they voted.
 */
export class QuorumKind implements LockKind {
  readonly label = "quorumLock";
  readonly eventKind = "quorum";
  readonly protocol = "quorum";
  readonly wake: Wake;
  readonly localPasses: number;
  readonly longestLease: number;
  readonly yield = null;
  readonly isConfirmed = false;
  readonly recount = null;
  readonly together = null;
  /** One lock a call: where a node is missing, each lock has a fate of its own. */
  readonly batch = 1;
  readonly #quorum: Quorum;
  readonly #settings: QuorumSettings;
  readonly #host: QuorumHost;
  readonly #clock = new TokenClock();

  constructor(quorum: Quorum, settings: QuorumSettings, host: QuorumHost) {
    this.wake = { by: "message", channel: (name) => quorum.keys.ofQuorum(name).free };
    this.localPasses = settings.localPasses;
    this.longestLease = settings.longestLease;
    this.#quorum = quorum;
    this.#settings = settings;
    this.#host = host;
  }

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    tell(this.#attempt(hold, ask), told);
  }

  async #attempt(hold: Hold, { lease }: Ask): Promise<AttemptAnswer> {
    const wish = { lease, passes: this.localPasses, token: this.#clock.propose(this.localPasses) };
    const footprint = this.#newFootprint(hold.name);
    hold.record = footprint;
    const votes = this.#quorum.ask(
      footprint,
      (standing) => {
        const { node, state } = standing;
        return footprint.take(standing, node.vote(state, footprint.keys, hold.id, wish), this.#saw);
      },
      true,
    );
    const outcome = await this.#quorum.count(votes, (tally) => countVotes(tally, this.#settings.retryDelay));
    if (outcome.is === "held") {
      // Minority votes go back at once, and those that come late. The waiting engine knows nothing of them.
      // Waiters that a minority's votes refuse come back by themselves. RACE: votes were given up here, and the nodes that
      // hung have executed them: to a waiter they look like a held lock, so that it sleeps for all of that lease.
      footprint.wakes = footprint.size >= this.#quorum.majority;
      if (footprint.size > 0) this.#host.withdraw(this, hold);
      return { ...outcome, at: 0, position: null };
    }
    footprint.decided();
    const token = await this.#agree(hold, footprint, outcome.granted);
    hold.lasts(hold.sent, lease);
    if (hold.left() <= 0) throw new Error("the votes took longer than the lease");
    // A late vote's token is behind those of whatever came in between, so larger than ours; or it took long.
    footprint.granted(
      this.#repair(hold, footprint, token),
      (standing, vote) => vote.token > token || !(standing.isVoter || this.#isPrompt(hold)),
    );
    // `at` is the same always: no node's time is compared with another's, and the deadline counts from the sending.
    return { is: "owner", at: 0, token, ttl: lease, already: false };
  }

  /** Also of a node that was not needed: the next proposal is larger than what it has, and its vote as good as the others'. */
  readonly #saw = (vote: Vote): void => {
    if (vote.is === "owner") this.#clock.saw(vote.token, this.localPasses);
  };

  #newFootprint(name: string): Footprint {
    return new Footprint(this.#quorum.keys.ofQuorum(name), this.#quorum.nodes);
  }

  #footprintOf({ name, record }: Recorded): Footprint {
    return record instanceof Footprint ? record : this.#newFootprint(name);
  }

  /** The votes came so quickly that they count as one moment. */
  #isPrompt({ sent }: Hold): boolean {
    const { mono, wall } = now();
    return Math.max(mono - sent.mono, wall - sent.wall) <= this.#settings.nodeTimeout * PROMPT_PART;
  }

  /** The token of a majority that has voted: see above. */
  async #agree(hold: Hold, footprint: Footprint, granted: readonly Granted[]): Promise<number> {
    const tokens = granted.map((vote) => vote.token);
    const token = Math.max(...tokens);
    if (Math.min(...tokens) === token && this.#isPrompt(hold)) return token;
    const answers = this.#quorum.ask(footprint, async (standing) => {
      const stored = standing.node.agree(footprint.keys, hold.id, token, token + this.localPasses);
      const word = await standing.follow(stored, (word) => word === "gone" || word === "taken");
      return standing.isVoter ? word : "late";
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

  /** Has the nodes take it too that did not vote for it, and those that lose it, until the lease ends. */
  #repair(hold: Hold, footprint: Footprint, token: number): Repair {
    const { majority, nodes } = this.#quorum;
    const { keys } = footprint;
    return new Repair(footprint, majority, {
      left: () => hold.left(),
      join: (standing, ttl) => {
        const { node } = standing;
        const { state } = node;
        // Before it is written down as sent: what was never sent need not be taken back.
        if (state !== "voting") return Promise.reject(node.refusal(state, keys));
        // Written down as a vote, so that the release reaches it also when that overtakes it.
        return footprint.take(standing, node.join(keys, hold.id, ttl, token, token + this.localPasses));
      },
      renew: (ttl) => this.confirm(hold, ttl, this.#settings.nodeTimeout),
      lost: (why) => this.#host.lost(hold, why),
      exposed: (has) => this.#host.exposed(hold, has, nodes.length),
    });
  }

  withdraw(hold: Recorded): Promise<unknown> {
    const footprint = this.#footprintOf(hold);
    const { keys, wakes } = footprint;
    // What cannot be sent now is tried again.
    return footprint.erase((standing) =>
      standing.look(false)
        ? standing.node.release(keys, hold.id, wakes, 0)
        : Promise.reject(standing.node.refusal(standing.state, keys)),
    );
  }

  release(hold: Hold, told: Told<ReleaseAnswer>): void {
    tell(this.#releaseEverywhere(hold), told);
  }

  async #releaseEverywhere(hold: Hold): Promise<ReleaseAnswer> {
    const footprint = this.#footprintOf(hold);
    const clock = hold.token + this.localPasses;
    footprint.keeper?.end();
    const is = await this.#release(footprint, hold.id, clock);
    // The others have not answered yet, or cannot: it is taken back there when they do.
    if (footprint.size > 0) this.#host.withdraw(this, hold);
    return { is, clock: is === "released" ? clock : 0 };
  }

  /** `last`: the last token of the hold, passes included. */
  async #release(footprint: Footprint, id: string, last: number): Promise<ReleaseAnswer["is"]> {
    const decision = await this.#quorum.consult(footprint, "released", (standing) =>
      standing.follow(standing.node.release(footprint.keys, id, true, last), () => true),
    ).decision;
    return typeof decision === "string" ? decision : "released";
  }

  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    return Promise.all(holds.map((hold) => this.confirm(hold, hold.ttl, timeout)));
  }

  /**
   * Raises the TTL of a hold at every node. Only the word of nodes that count renews the lease, because a holder that has
   * lost a majority must learn of it.
   */
  async confirm(hold: Recorded, ttl: number, timeout: number): Promise<RenewAnswer> {
    const footprint = this.#footprintOf(hold);
    const learn = footprint.renewing();
    const { words, decision } = this.#quorum.consult(footprint, "renewed", ({ node }) =>
      node.renew(footprint.keys, hold.id, ttl, timeout),
    );
    const renewed = await decision;
    if (typeof renewed === "string") return { is: renewed, ttl: 0 };
    // RACE: if this were learned as the answers come, a node that lost the key would be asked to take it again also where the
    // others have lost it too.
    const learned = words.map((word) => word.then(({ standing, answer }) => learn(standing, answer)));
    void Promise.allSettled(learned).then((all) =>
      footprint.keeper?.renewed(footprint.standings.filter((_, i) => all[i]?.status === "rejected")),
    );
    return { is: "renewed", ttl: Math.min(...renewed.map((answer) => answer.ttl)) };
  }

  async inspect(name: string) {
    const found = await this.#holder(name);
    return {
      holder: found && withoutBits(found.holder),
      token: found?.token ?? 0,
      remaining: found?.ttl ?? null,
      waiters: [],
    };
  }

  /** Only the holder's: if votes were taken from clients that are just asking, one node could be counted by two of them. */
  async forceRelease(name: string): Promise<boolean> {
    const found = await this.#holder(name);
    if (!found) return false;
    const last = found.token + this.localPasses;
    return (await this.#release(this.#newFootprint(name), found.holder, last)) === "released";
  }

  /** Rejects when that cannot be known. */
  #holder(name: string) {
    const footprint = this.#newFootprint(name);
    const asked = this.#quorum.ask(footprint, ({ node }) => node.inspect(footprint.keys));
    return this.#quorum.count(asked, countHolders);
  }
}
