import type { QuorumKeys } from "../redis/keys.ts";
import type { ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { isLive, type NodeState } from "./node.ts";
import type { NodeHold, Vote } from "./node-commands.ts";
import { NodeVote } from "./node-vote.ts";
import type { Quorum } from "./quorum.ts";
import type { Granted } from "./votes.ts";

/** One node's answer about a hold. */
interface Word<A> {
  readonly nodeVote: NodeVote;
  readonly answer: A;
}

/**
 * The nodes that have a hold. Protects its holder from relying on a lease that other clients have
 * had in between: only answers of nodes that count renew a lease.
 *
 * | a node | true | its answer that it has the hold | leaves it by |
 * |---|---|---|---|
 * | counts | it voted for the lease, or was confirmed since it took the hold; as far as known it has kept the hold | counts | it lost the key, and a majority of those that count has renewed → missing |
 * | missing | it voted no, did not answer, or lost the key | does not count: another client may have had the lock there | it took the hold → late |
 * | late | it took the hold late | does not count yet | a renewal sent since then that a majority of those that count confirmed → counts · it lost the key again → missing |
 *
 * **Why a late node counts after such a renewal.** Another holder would have needed a majority of
 * nodes, and so one of those that count and have just said that they have the hold; but these have
 * never lost it. From that moment on the late node is a node like them.
 *
 * RACE: A has the lock by nodes 1 and 2. Node 2 forgets it; B gets nodes 2 and 3, and leaves again.
 * Then node 3, or node 2, takes A's hold. If it counted at once, A would have a majority once more,
 * and never learn that B had come in between.
 * Instead, node 2 has lost the hold, so node 1 is alone: nothing confirms the late one, and A's
 * lease is lost.
 *
 * RACE: A has the lock by all three. Node 1 forgets it, and any time later node 2. If node 1 had
 * not taken the hold again meanwhile, A would have only node 3, and B could get the other two.
 */
export class QuorumHold implements NodeHold {
  readonly keys: QuorumKeys;
  /** In the order of the nodes. */
  readonly nodeVotes: readonly NodeVote[];
  /** Does its end wake waiters? See `QuorumKind.attempt`. */
  wakes = true;
  #isLate: ((vote: Granted) => boolean) | null = null;
  #changes = 0;

  constructor(
    protected readonly quorum: Quorum,
    name: string,
    readonly id: string,
  ) {
    this.keys = quorum.keys.ofQuorum(name);
    this.nodeVotes = quorum.nodes.map((node) => new NodeVote(node));
  }

  // ---- commands to all nodes

  /**
   * Asks every node that can answer about the hold; the others give errors at once. A node that
   * hangs is asked too if those that count have no majority without it. `isVote`: young nodes are
   * not asked.
   */
  ask<A>(send: (nodeVote: NodeVote, state: NodeState) => Promise<A>, isVote = false): Promise<A>[] {
    const states = this.nodeVotes.map(({ node }) => node.state);
    const lives = states.map((state) => isLive(state, isVote));
    const helpful = this.nodeVotes.filter(({ is }, i) => lives[i] && is === "counts").length;
    return this.nodeVotes.map((nodeVote, i) => {
      const state = states[i] ?? "away";
      const isNeeded = state === "silent" && helpful < this.quorum.majority;
      if (lives[i] || isNeeded) return send(nodeVote, state);
      return Promise.reject(nodeVote.node.refusal(state, this.keys));
    });
  }

  /** A node is asked to take the hold. */
  take(nodeVote: NodeVote, asked: Promise<Vote>): Promise<Vote> {
    return nodeVote.take(asked, () => {
      if (!this.#isLate) return;
      this.#judge(nodeVote);
      this.heard();
    });
  }

  /**
   * Raises the TTL at every node. Only answers of nodes that count renew the lease, because a
   * holder that has lost a majority must learn of it.
   *
   * RACE: a node may take the hold, or lose it, between this and its answer. Then the answer
   * describes the time before, and proves nothing. So it changes a node's state only if that has
   * not changed since the renewal was sent.
   */
  async confirm(ttl: number, timeout: number): Promise<RenewAnswer> {
    const before = this.#changes;
    this.renewing();
    const { words, decision } = this.#consult("renewed", ({ node }) => node.renew(this, ttl, timeout));
    const renewed = await decision;
    if (typeof renewed === "string") return { is: renewed, ttl: 0 };
    // RACE: if each answer were applied when it comes, a node that lost the key would be asked to
    // take it again even if the others have lost it too.
    const learned = words.map((word) => word.then((one) => this.#learn(one, before)));
    void Promise.allSettled(learned).then((all) =>
      this.renewed(this.nodeVotes.filter((_, i) => all[i]?.status === "rejected")),
    );
    return { is: "renewed", ttl: Math.min(...renewed.map((answer) => answer.ttl)) };
  }

  /**
   * Ends it at every node, and notifies waiters. `last`: the last token of the hold, with its local
   * hand-offs.
   */
  async release(last: number): Promise<ReleaseAnswer["is"]> {
    this.end();
    const { decision } = this.#consult("released", (nodeVote) =>
      nodeVote.follow(nodeVote.node.release(this, true, last), () => true),
    );
    const released = await decision;
    return typeof released === "string" ? released : "released";
  }

  /** Has every node that may have the hold withdraw it. Rejects when one has not answered. */
  async erase(): Promise<void> {
    this.end();
    const erasing = this.nodeVotes.map((nodeVote) =>
      nodeVote.erase(async () => {
        const { node } = nodeVote;
        const { state } = node;
        // A command that cannot be sent now is tried again.
        if (!isLive(state, false)) throw node.refusal(state, this.keys);
        return node.release(this, this.wakes, 0);
      }),
    );
    for (const one of await Promise.allSettled(erasing)) if (one.status === "rejected") throw one.reason;
  }

  /**
   * Sends a command about the hold to every node. `yes`: the answer of a node that has, or had, the
   * hold. Resolves with the yes answers of a majority that counts, or with the reason why there can
   * be none.
   */
  #consult<A extends { readonly is: string }>(
    yes: A["is"],
    send: (nodeVote: NodeVote) => Promise<A>,
  ): { words: Promise<Word<A>>[]; decision: Promise<readonly A[] | "gone" | "taken"> } {
    const words = this.ask(async (nodeVote) => {
      const answer = await send(nodeVote);
      if (answer.is === yes && nodeVote.isOut) await nodeVote.heard();
      return { nodeVote, answer };
    });
    const decision = this.quorum.count(words, ({ answers, majority }) => {
      const counted = answers.filter(({ nodeVote, answer }) => answer.is === yes && nodeVote.is === "counts");
      if (counted.length >= majority) return counted.map(({ answer }) => answer);
      // "Gone" needs answers that leave no majority possible; a node that does not answer may still
      // have the hold. A missing node does not: waiting for its answer would mean relying on a lost
      // lease.
      const said = new Set(answers.map(({ nodeVote }) => nodeVote));
      const unheard = this.nodeVotes.filter((one) => one.is !== "missing" && !said.has(one)).length;
      if (counted.length + unheard >= majority) return undefined;
      return answers.some(({ answer }) => answer.is === "taken") ? "taken" : "gone";
    });
    return { words, decision };
  }

  // ---- which nodes count

  /** How many nodes may have the hold. */
  get size(): number {
    return this.nodeVotes.filter(({ mayHave }) => mayHave).length;
  }

  all(is: NodeVote["is"]): NodeVote[] {
    return this.nodeVotes.filter((nodeVote) => nodeVote.is === is);
  }

  /** The lease is granted. `isLate`: does this vote come too late to count as a vote? */
  protected granted(isLate: (vote: Granted) => boolean): void {
    this.#isLate = isLate;
    for (const nodeVote of this.nodeVotes) if (!nodeVote.isOut) this.#judge(nodeVote);
    // After the last one: until all are judged, a node that voted no looks like one that counts.
    this.heard();
  }

  #judge(nodeVote: NodeVote): void {
    const { vote } = nodeVote;
    nodeVote.isUnheard = false;
    if (vote?.is !== "owner") this.#set(nodeVote, "missing");
    // RACE: a vote that runs after B's lease is only as good as a hold that is taken after it.
    else if (nodeVote.is === "missing" || this.#isLate?.(vote)) this.#set(nodeVote, "late");
  }

  /**
   * Applies a renewal that a majority has confirmed. `before`: how many changes there were when it
   * was sent.
   */
  #learn({ nodeVote, answer }: Word<RenewAnswer>, before: number): void {
    nodeVote.isUnheard = false;
    if (nodeVote.change > before) return;
    if (answer.is === "renewed") {
      if (nodeVote.is === "late") this.#set(nodeVote, "counts");
    } else if (nodeVote.is !== "missing") {
      this.#set(nodeVote, "missing");
      this.broke();
    }
  }

  #set(nodeVote: NodeVote, is: NodeVote["is"]): void {
    nodeVote.is = is;
    nodeVote.change = ++this.#changes;
  }

  // ---- what happens to a granted lease: see `KeptQuorumHold`

  /** A node has said whether it takes the hold, or has been given up. */
  protected heard(): void {}

  /** A node that counted no longer does. */
  protected broke(): void {}

  /** A renewal is sent to all nodes now. */
  protected renewing(): void {}

  /** It was confirmed. Every node has answered it, except these. */
  protected renewed(_silent: readonly NodeVote[]): void {}

  /** The lease ends. */
  protected end(): void {}
}
