import { PROMPT_PART } from "../defaults.ts";
import { withoutBits } from "../hold-ids.ts";
import type { Hold } from "../lease/hold.ts";
import { Validity } from "../lease/validity.ts";
import type { AttemptAnswer, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { now } from "../util/clock.ts";
import type { Ask, LockKind } from "../waiting/lock-kind.ts";
import { Exposure } from "./exposure.ts";
import { Footing } from "./footing.ts";
import { Footprint } from "./footprint.ts";
import { findHolder } from "./holders.ts";
import type { QuorumNode } from "./node.ts";
import type { Vote } from "./node-scripts.ts";
import type { QuorumSettings } from "./options.ts";
import { renewEverywhere } from "./renewal.ts";
import { Completion } from "./repair.ts";
import { TokenClock } from "./token-clock.ts";
import { type Granted, verdict } from "./verdict.ts";
import type { Quorum } from "./votes.ts";

/** What the kind asks its client for. */
interface Company {
  /** Takes a hold back behind, again and again until every node has answered. */
  withdraw(kind: LockKind, hold: Hold): void;
  /** The nodes have said that the hold's lease is lost. */
  lost(hold: Hold, why: "gone" | "taken"): void;
  /** A lease stands on a bare majority, on so many of so many nodes; or does no more. */
  exposed(hold: Hold, has: number, of: number): void;
}

/**
 * Redlock: the holder of a lock is the hold that a majority of independent masters has written down.
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 *
 * **Tokens grow.** Before a caller gets a lease with token T, a majority of nodes has stored T with its passes, each of
 * them while the hold owned its key: either in the vote itself, when all votes brought the same token, or by `agree`. A
 * later lease has a majority too, so one node Z is in both. The keys of two holds are at Z one after the other. The later
 * one's was not first: it would have ended before the earlier vote at Z, while its own lease had not begun yet. So Z
 * voted for it after it had stored T, and answered more than T and its passes; and its token is the largest of its votes:
 * where Z's came too late to be counted, and is larger, `agree` is refused there.
 * Nodes that take a lease later (`Completion`) are no votes, and are in neither majority.
 * Where Z forgot everything in between it was young, and did not vote; later the clocks of the clients decide.
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
  readonly queues = false;
  readonly solitary = false;
  readonly localPasses: number;
  readonly longestLease: number;
  readonly pause = null;
  readonly yield = null;
  readonly isConfirmed = false;
  readonly recount = null;
  /** One lock a call: where a node is missing, each lock has a fate of its own. */
  readonly batch = 1;
  readonly #quorum: Quorum;
  readonly #retryDelay: number;
  readonly #nodeTimeout: number;
  readonly #company: Company;
  readonly #clock = new TokenClock();
  readonly #traces = new WeakMap<object, Footprint>();
  /** By the hold's id: of every lease. */
  readonly #completions = new Map<string, Completion>();

  constructor(quorum: Quorum, settings: QuorumSettings, company: Company) {
    this.localPasses = settings.localPasses;
    this.longestLease = settings.longestLease;
    this.#quorum = quorum;
    this.#retryDelay = settings.retryDelay;
    this.#nodeTimeout = settings.nodeTimeout;
    this.#company = company;
  }

  channel(name: string): string {
    return this.#quorum.keys.quorumChannel(name);
  }

  async attempt(hold: Hold, { lease }: Ask): Promise<AttemptAnswer> {
    const wish = { lease, passes: this.localPasses, token: this.#clock.propose(this.localPasses) };
    const traces = new Footprint();
    const voters = new Set<QuorumNode>();
    this.#traces.set(hold, traces);
    const votes = this.#quorum.ask(
      hold.name,
      (node) => {
        const { youth } = node;
        if (youth) return Promise.reject(youth);
        return traces.voting(node, this.#vote(node, hold, wish, voters), ({ is }) => is === "held");
      },
      ({ youth }) => youth === null,
    );
    const decision = await this.#quorum.count(votes, (tally) =>
      verdict(this.#quorum, tally, this.#retryDelay),
    );
    if (decision.is === "held") {
      // Minority votes go back at once, and those that come late. The waiting engine knows nothing of them.
      // Waiters that a minority's votes refuse come back by themselves. RACE: votes were given up here, and the nodes that
      // hung have executed them: to a waiter they look like a held lock, so that it sleeps for all of that lease.
      traces.wakes = this.#quorum.isMajority(traces.size);
      if (traces.size > 0) this.#company.withdraw(this, hold);
      return { ...decision, at: 0, position: null };
    }
    // RACE: a vote that comes from now on may come behind the end of another one.
    const counted = new Set(voters);
    const token = await this.#agree(hold, decision.granted, traces, counted);
    const validity = new Validity(hold.sent);
    validity.renewed(hold.sent, lease);
    if (validity.left() <= 0) throw new Error("the votes took longer than the lease");
    // A late vote's token is behind those of whatever came in between, so larger than ours; or it took long.
    const isLate = (node: QuorumNode, vote: Granted): boolean =>
      vote.token > token || !(counted.has(node) || this.#isPrompt(hold));
    this.#complete(hold, token, new Footing(this.#quorum.nodes, votes, isLate), traces);
    // `at` is the same always: no node's time is compared with another's, and the deadline counts from the sending.
    return { is: "owner", at: 0, token, ttl: lease, already: false };
  }

  /** `voters`: where a node is written down that said yes. */
  async #vote(
    node: QuorumNode,
    { name, id }: Hold,
    wish: Parameters<QuorumNode["vote"]>[2],
    voters: Set<QuorumNode>,
  ): Promise<Vote> {
    const vote = await node.vote(name, id, wish);
    if (vote.is === "owner") voters.add(node);
    // Also of a node that was not needed: the next proposal is larger than what it has, and its vote as good as the others'.
    if (vote.is === "owner") this.#clock.saw(vote.token, this.localPasses);
    return vote;
  }

  /** The votes came so quickly that they count as one moment. */
  #isPrompt({ sent }: Hold): boolean {
    const { mono, wall } = now();
    return Math.max(mono - sent.mono, wall - sent.wall) <= this.#nodeTimeout * PROMPT_PART;
  }

  /** The token of a majority that has voted: see above. `counted`: the nodes of these votes. */
  async #agree(
    hold: Hold,
    granted: readonly Granted[],
    traces: Footprint,
    counted: ReadonlySet<QuorumNode>,
  ): Promise<number> {
    const tokens = granted.map(({ token }) => token);
    const token = Math.max(...tokens);
    if (tokens.every((one) => one === token) && this.#isPrompt(hold)) return token;
    const answers = this.#quorum.ask(hold.name, async (node) => {
      const word = await traces.follow(
        node,
        node.agree(hold.name, hold.id, token, this.localPasses),
        (word) => word === "gone" || word === "taken",
      );
      return counted.has(node) ? word : "late";
    });
    await this.#quorum.count(answers, ({ answers, pending }) => {
      const agreed = answers.filter((word) => word === "agreed").length;
      if (this.#quorum.isMajority(agreed)) return true;
      if (this.#quorum.isMinority(agreed + pending))
        throw new Error("the nodes that voted lost the lock before its token was agreed on");
      return undefined;
    });
    return token;
  }

  /** Has the nodes take it too that did not vote for it, and those that lose it, until the lease ends. */
  #complete(hold: Hold, token: number, footing: Footing, traces: Footprint): void {
    const { id, name } = hold;
    const last = token + this.localPasses;
    const { nodes, majority } = this.#quorum;
    const exposure = new Exposure(majority, (has) => this.#company.exposed(hold, has, nodes.length));
    const completion = new Completion(footing, exposure, {
      left: () => hold.validity.left(),
      join: (node, ttl) => {
        // Before it is traced: what was never sent need not be taken back.
        const unfit = node.unfit(name);
        if (unfit) return Promise.reject(unfit);
        // Traced as a vote, so that the release reaches it also when that overtakes it.
        return traces.voting(node, node.join(name, id, { ttl, token, last }), ({ is }) => is === "held");
      },
      confirm: (ttl) => this.claim(hold, ttl, this.#nodeTimeout),
      done: () => this.#completions.delete(id),
      lost: (why) => this.#company.lost(hold, why),
    });
    this.#completions.set(id, completion);
  }

  /** The hold ends: no node is asked to take it any more. */
  #stop(id: string): Completion | undefined {
    const completion = this.#completions.get(id);
    completion?.end();
    this.#completions.delete(id);
    return completion;
  }

  withdraw(hold: { readonly id: string; readonly name: string }): Promise<unknown> {
    this.#stop(hold.id);
    const traces = this.#traces.get(hold);
    if (!traces) return Promise.resolve();
    const { id, name } = hold;
    return traces.erase((node) => {
      const absence = node.absence(name, false); // what cannot be sent now is tried again
      return absence ? Promise.reject(absence) : node.release(name, id, traces.wakes, 0);
    });
  }

  async release(hold: Hold): Promise<ReleaseAnswer> {
    const traces = this.#traces.get(hold) ?? new Footprint();
    const last = hold.token + this.localPasses;
    const completion = this.#stop(hold.id);
    const footing = completion?.footing;
    const counts = (node: QuorumNode): boolean => footing?.counts(node) ?? true;
    const words = this.#quorum.ask(
      hold.name,
      async (node) => {
        const answer = await traces.follow(node, node.release(hold.name, hold.id, true, last), () => true);
        if (answer.is === "released") await footing?.heard(node);
        return { node, is: counts(node) || answer.is !== "released" ? answer.is : "gone" };
      },
      counts,
    );
    const answer = await this.#quorum.count(words, ({ answers }): ReleaseAnswer | undefined => {
      const released = answers.filter(({ is }) => is === "released").length;
      if (this.#quorum.isMajority(released)) return { is: "released", clock: last };
      const unheard = footing?.unheard(answers) ?? this.#quorum.unheard(answers);
      if (this.#quorum.isMajority(released + unheard)) return undefined;
      return { is: answers.some(({ is }) => is === "taken") ? "taken" : "gone", clock: 0 };
    });
    // The others have not answered yet, or cannot: it is taken back there when they do.
    if (traces.size > 0) this.#company.withdraw(this, hold);
    return answer;
  }

  renew(
    holds: readonly { name: string; id: string; ttl: number }[],
    timeout: number,
  ): Promise<RenewAnswer[]> {
    return Promise.all(holds.map((hold) => this.claim(hold, hold.ttl, timeout)));
  }

  claim(hold: { name: string; id: string }, ttl: number, timeout: number): Promise<RenewAnswer> {
    return renewEverywhere(this.#quorum, hold, ttl, timeout, this.#completions.get(hold.id));
  }

  async inspect(name: string) {
    const found = await findHolder(this.#quorum, name);
    return {
      holder: found && withoutBits(found.holder),
      token: found?.token ?? 0,
      remaining: found?.ttl ?? null,
      waiters: [],
    };
  }

  /** Only the holder's: if votes were taken from clients that are just asking, one node could be counted by two of them. */
  async forceRelease(name: string): Promise<boolean> {
    const found = await findHolder(this.#quorum, name);
    if (!found) return false;
    const answers = this.#quorum.ask(name, (node) =>
      node.release(name, found.holder, true, found.token + this.localPasses),
    );
    return this.#quorum.count(answers, ({ answers }) => {
      const released = answers.filter(({ is }) => is === "released").length;
      if (this.#quorum.isMajority(released)) return true;
      // A node that does not answer may still have it.
      return this.#quorum.isMajority(released + this.#quorum.unheard(answers)) ? undefined : false;
    });
  }
}
