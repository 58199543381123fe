import { withoutBits } from "../hold-ids.ts";
import type { Hold } from "../lease/hold.ts";
import { Validity } from "../lease/validity.ts";
import type { AttemptAnswer, ReleaseAnswer, RenewAnswer } from "../scripts/answers.ts";
import type { Vote } from "../scripts/quorum.ts";
import type { Ask, LockKind } from "../waiting/kind.ts";
import { Completion } from "./completion.ts";
import { findHolder } from "./holders.ts";
import type { QuorumNode } from "./node.ts";
import type { QuorumSettings } from "./options.ts";
import type { Quorum } from "./quorum.ts";
import { TokenClock } from "./token-clock.ts";
import { Traces } from "./traces.ts";
import { type Granted, verdict } from "./verdict.ts";

/** Takes a hold back behind, again and again until every node has answered. */
type Withdraw = (hold: Hold) => void;

/**
 * Redlock: a lock is held by whom a majority of independent masters has written down.
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
  readonly #withdraw: Withdraw;
  readonly #clock = new TokenClock();
  readonly #traces = new WeakMap<object, Traces>();
  /** By the hold's id: of leases that do not stand on every node yet. */
  readonly #completions = new Map<string, Completion>();

  constructor(quorum: Quorum, settings: QuorumSettings, withdraw: (kind: LockKind, hold: Hold) => void) {
    this.localPasses = settings.localPasses;
    this.longestLease = settings.longestLease;
    this.#quorum = quorum;
    this.#retryDelay = settings.retryDelay;
    this.#nodeTimeout = settings.nodeTimeout;
    this.#withdraw = (hold) => withdraw(this, hold);
  }

  channel(name: string): string {
    return this.#quorum.keys.quorumChannel(name);
  }

  async attempt(hold: Hold, { lease }: Ask): Promise<AttemptAnswer> {
    const wish = { lease, passes: this.localPasses, token: this.#clock.propose(this.localPasses) };
    const traces = new Traces();
    this.#traces.set(hold, traces);
    const votes = this.#quorum.ask(
      hold.name,
      (node) => {
        const { youth } = node;
        if (youth) return Promise.reject(youth);
        return traces.voting(node, this.#vote(node, hold, wish), ({ is }) => is === "held");
      },
      ({ youth }) => youth === null,
    );
    const decision = await this.#quorum.count(votes, (tally) =>
      verdict(this.#quorum, tally, this.#retryDelay),
    );
    if (decision.is === "held") {
      // Minority votes go back at once, and those that come late. The waiting engine knows nothing of them.
      // Waiters that a minority's votes refuse come back by themselves. RACE: votes were given up here, and the nodes that
      // hung have executed them: to a waiter they look like somebody's lock, and he sleeps for all of its time.
      traces.wakes = this.#quorum.isMajority(traces.size);
      if (traces.size > 0) this.#withdraw(hold);
      return { ...decision, at: 0, position: null };
    }
    const token = await this.#agree(hold, decision.granted, traces);
    const validity = new Validity(hold.sent);
    validity.renewed(hold.sent, lease);
    if (validity.left() <= 0) throw new Error("the votes took longer than the lease");
    this.#complete(hold, token, votes, traces);
    // `at` is the same always: no node's time is compared with another's, and the deadline counts from the sending.
    return { is: "owner", at: 0, token, ttl: lease, already: false };
  }

  async #vote(node: QuorumNode, { name, id }: Hold, wish: Parameters<QuorumNode["vote"]>[2]): Promise<Vote> {
    const vote = await node.vote(name, id, wish);
    // Also of a node that was not needed: the next proposal is larger than what it has, and its vote as good as the others'.
    if (vote.is === "owner") this.#clock.saw(vote.token, this.localPasses);
    return vote;
  }

  /** The token of a majority that has voted: see above. */
  async #agree(hold: Hold, granted: readonly Granted[], traces: Traces): Promise<number> {
    const tokens = granted.map(({ token }) => token);
    const token = Math.max(...tokens);
    if (!Number.isSafeInteger(token + this.localPasses)) throw new Error(`the token ${token} is too large`);
    if (tokens.every((one) => one === token)) return token;
    const answers = this.#quorum.ask(hold.name, (node) =>
      traces.follow(
        node,
        node.agree(hold.name, hold.id, token, this.localPasses),
        (word) => word === "gone" || word === "taken",
      ),
    );
    await this.#quorum.count(answers, ({ answers, pending }) => {
      const agreed = answers.filter((word) => word === "agreed").length;
      if (this.#quorum.isMajority(agreed)) return true;
      if (this.#quorum.isMinority(agreed + pending))
        throw new Error("the nodes that voted lost the lock before its token was agreed on");
      return undefined;
    });
    return token;
  }

  /** Has the nodes take it too that did not vote for it, until the lease ends. */
  #complete(hold: Hold, token: number, votes: readonly Promise<Vote>[], traces: Traces): void {
    const { id, name } = hold;
    const last = token + this.localPasses;
    const completion = new Completion(this.#quorum.nodes, votes, token, {
      left: () => hold.validity.left(),
      join: (node, ttl) => {
        const absence = node.absence(name, false) ?? node.youth;
        if (absence) return Promise.reject(absence);
        // Traced as a vote, so that the release reaches it also when that overtakes it.
        return traces.voting(node, node.join(name, id, { ttl, token, last }), ({ is }) => is === "held");
      },
      confirm: (ttl) => this.claim(hold, ttl, this.#nodeTimeout),
      done: () => this.#completions.delete(id),
      leave: (node) => {
        traces.follow(node, node.release(name, id, true, 0), () => true).catch(() => {});
      },
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
    const traces = this.#traces.get(hold) ?? new Traces();
    const last = hold.token + this.localPasses;
    const completion = this.#stop(hold.id);
    const counts = (node: QuorumNode): boolean => completion?.counts(node) ?? true;
    const answers = this.#quorum.ask(
      hold.name,
      async (node): Promise<ReleaseAnswer> => {
        const answer = await traces.follow(node, node.release(hold.name, hold.id, true, last), () => true);
        if (answer.is === "released") await completion?.heard(node);
        return counts(node) || answer.is !== "released" ? answer : { ...answer, is: "gone" };
      },
      counts,
    );
    const answer = await this.#quorum.count<ReleaseAnswer, ReleaseAnswer>(answers, ({ answers }) => {
      const released = answers.filter(({ is }) => is === "released").length;
      if (this.#quorum.isMajority(released)) return { is: "released", clock: last };
      if (this.#quorum.isMajority(released + this.#quorum.unheard(answers))) return undefined;
      return { is: answers.some(({ is }) => is === "taken") ? "taken" : "gone", clock: 0 };
    });
    // The others have not answered yet, or cannot: it is taken back there when they do.
    if (traces.size > 0) this.#withdraw(hold);
    return answer;
  }

  renew(
    holds: readonly { name: string; id: string; ttl: number }[],
    timeout: number,
  ): Promise<RenewAnswer[]> {
    return Promise.all(holds.map((hold) => this.claim(hold, hold.ttl, timeout)));
  }

  /** A node that lost the key is not asked to take it again: who has lost a majority must learn of it. */
  claim(hold: { name: string; id: string }, ttl: number, timeout: number): Promise<RenewAnswer> {
    const { name, id } = hold;
    const completion = this.#completions.get(id);
    const counts = (node: QuorumNode): boolean => completion?.counts(node) ?? true;
    const answers = this.#quorum.ask(
      name,
      async (node): Promise<RenewAnswer> => {
        const answer = await node.renew(name, id, ttl, timeout);
        if (answer.is === "renewed") await completion?.heard(node);
        return counts(node) || answer.is !== "renewed" ? answer : { is: "gone", ttl: 0 };
      },
      counts,
    );
    return this.#quorum.count<RenewAnswer, RenewAnswer>(answers, ({ answers }) => {
      const ttls = answers.filter(({ is }) => is === "renewed").map((answer) => answer.ttl);
      if (this.#quorum.isMajority(ttls.length)) return { is: "renewed", ttl: Math.min(...ttls) };
      // Gone is only said when so many nodes have said so; who does not answer may still have it.
      if (this.#quorum.isMajority(ttls.length + this.#quorum.unheard(answers))) return undefined;
      return { is: answers.some(({ is }) => is === "taken") ? "taken" : "gone", ttl: 0 };
    });
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

  /** Only of him who holds it: taking votes from those who are just asking could give one node to two of them. */
  async forceRelease(name: string): Promise<boolean> {
    const found = await findHolder(this.#quorum, name);
    if (!found) return false;
    const answers = this.#quorum.ask(name, (node) =>
      node.release(name, found.holder, true, found.token + this.localPasses),
    );
    return this.#quorum.count(answers, ({ answers }) => {
      const released = answers.filter(({ is }) => is === "released").length;
      if (this.#quorum.isMajority(released)) return true;
      // Who does not answer may still have it.
      return this.#quorum.isMajority(released + this.#quorum.unheard(answers)) ? undefined : false;
    });
  }
}
