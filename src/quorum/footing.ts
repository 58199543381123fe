import type { RenewAnswer } from "../redis/replies.ts";
import type { QuorumNode } from "./node.ts";
import type { Vote } from "./node-scripts.ts";
import type { Granted } from "./verdict.ts";

/** What a node is to a lease. Every change makes a new object, which tells an answer of before the change from one behind it. */
interface Standing {
  readonly is: "counts" | "missing" | "guest";
}

/** What the answer of one node to a renewal changes. To be called only when the nodes that count have renewed by a majority. */
export type Learn = (node: QuorumNode, answer: RenewAnswer) => void;

type IsLate = (node: QuorumNode, vote: Granted) => boolean;

/**
 * The nodes that a lease stands on.
 *
 * | a node | true | its word that it has the hold | leaves it by |
 * |---|---|---|---|
 * | counts | it voted for the lease, or was confirmed since it took the hold; as far as is known it has kept the hold | counts | it lost the key, and a majority of those that count has renewed → missing |
 * | missing | it voted no, was not heard, or lost the key | does not count: another client may have had the lock there | it took the hold → a guest |
 * | guest | it took the hold late | does not count yet | a renewal that was sent since then, and that a majority of those that count confirmed → counts · it lost the key again → missing |
 *
 * **Why a guest counts behind such a renewal.** Another holder would have needed a majority of nodes, so one of those that
 * have just said that they have the hold, and count: they have never let go of it. From that moment on the guest is
 * a node like them.
 *
 * RACE: A has the lock by nodes 1 and 2. Node 2 forgets it; B gets nodes 2 and 3, and leaves again. Then node 3, or node 2,
 * takes A's hold. If it counted at once, A would have a majority once more, and never learn that B had come in between.
 * Here node 2 has lost the hold, so node 1 is alone: nothing confirms the guest, and A's lease is lost.
 *
 * RACE: A has the lock by all three. Node 1 forgets it, and any time later node 2. If node 1 had not taken the hold again
 * meanwhile, A would be left with node 3, and B could have the other two.
 */
export class Footing {
  readonly #standing = new Map<QuorumNode, Standing>();
  readonly #heard = new Map<QuorumNode, Promise<void>>();
  /** Nodes whose last word on the hold did not come: their votes are out, or the last renewal was not answered. */
  readonly #unheard = new Set<QuorumNode>();

  /** A node that counted does not any more. */
  onLack: () => void = () => {};

  /** `votes`: of the nodes, in their order. `isLate`: does this yes come too late to be that of a voter? */
  constructor(nodes: readonly QuorumNode[], votes: readonly Promise<Vote>[], isLate: IsLate) {
    for (const [i, node] of nodes.entries()) {
      this.#set(node, "counts");
      this.#unheard.add(node);
      this.#heard.set(node, this.#hear(node, votes[i], isLate));
    }
  }

  async #hear(node: QuorumNode, asked: Promise<Vote> | undefined, isLate: IsLate): Promise<void> {
    const vote = await asked?.catch(() => null);
    this.#unheard.delete(node);
    if (vote?.is !== "owner") this.#set(node, "missing");
    // RACE: a vote that is executed behind B's lease is as good as a joining behind it.
    else if (isLate(node, vote)) this.#set(node, "guest");
  }

  /** Is what this node says about the hold the word of one that has always had it? A vote that is still out may be a yes. */
  counts(node: QuorumNode): boolean {
    return this.#standing.get(node)?.is === "counts";
  }

  /**
   * Of how many nodes could a word that has not come still count? `words`: those that have come.
   *
   * A node that is missing cannot have the hold, whatever it would say: where those that count have lost it, to wait for
   * that one is to believe in a lost lease.
   */
  unheard(words: readonly { readonly node: QuorumNode }[]): number {
    const from = new Set(words.map(({ node }) => node));
    return [...this.#standing].filter(([node, { is }]) => is !== "missing" && !from.has(node)).length;
  }

  /** How many nodes count, and were last heard to have the hold. */
  get has(): number {
    return this.#all("counts").filter((node) => !this.#unheard.has(node)).length;
  }

  get missing(): QuorumNode[] {
    return this.#all("missing");
  }

  get guests(): QuorumNode[] {
    return this.#all("guest");
  }

  /**
   * To be waited for before a node's word that it has, or had, the hold is judged.
   *
   * RACE: its late vote and that word come in one packet. The vote is the first to be read, and not the first to get here.
   */
  async heard(node: QuorumNode): Promise<void> {
    await this.#heard.get(node);
  }

  /** All votes have been heard, or given up. */
  async settled(): Promise<void> {
    await Promise.all(this.#heard.values());
  }

  /** A missing node is asked to take the hold. */
  joining(node: QuorumNode, join: Promise<Vote>): Promise<void> {
    const joined = join.then(
      ({ is }) => {
        if (is === "owner" && this.#standing.get(node)?.is === "missing") this.#set(node, "guest");
      },
      () => {},
    );
    this.#heard.set(node, joined);
    return joined;
  }

  /**
   * A renewal is sent to all nodes now.
   *
   * RACE: the node took the hold, or lost it, between this and its answer. Then the answer is of before that, and proves
   * nothing: only what the node was when the renewal was sent, and still is, can change by it.
   */
  asking(): Learn {
    const before = new Map(this.#standing);
    return (node, { is }) => {
      const standing = this.#standing.get(node);
      this.#unheard.delete(node);
      if (!standing || standing !== before.get(node)) return;
      if (is === "renewed") {
        if (standing.is === "guest") this.#set(node, "counts");
      } else if (standing.is !== "missing") {
        this.#set(node, "missing");
        this.onLack();
      }
    };
  }

  /** The node did not answer a renewal. */
  silent(node: QuorumNode): void {
    this.#unheard.add(node);
  }

  #set(node: QuorumNode, is: Standing["is"]): void {
    this.#standing.set(node, { is });
  }

  #all(is: Standing["is"]): QuorumNode[] {
    return [...this.#standing].flatMap(([node, standing]) => (standing.is === is ? [node] : []));
  }
}
