import type { QuorumKeys } from "../keys.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import type { QuorumNode } from "./node.ts";
import type { Vote } from "./node-commands.ts";
import { Standing } from "./standing.ts";
import type { Granted } from "./votes.ts";

/** Is told what becomes of a granted lease. */
interface Keeper {
  /** A node has said whether it takes the hold, or will not say it any more. */
  heard(): void;
  /** A node that counted does not any more. */
  broke(): void;
  /** A renewal is sent to all nodes now. */
  renewing(): void;
  /** It was confirmed. Every node has answered it, but these. */
  renewed(silent: readonly Standing[]): void;
  /** The lease ends. */
  end(): void;
}

/**
 * The nodes that a hold stands on. Protects its holder from believing in a lease that other clients have had in between: a
 * lease goes on only by the word of nodes that count.
 *
 * | a node | true | its word that it has the hold | leaves it by |
 * |---|---|---|---|
 * | counts | it voted for the lease, or was confirmed since it took the hold; as far as is known it has kept the hold | counts | it lost the key, and a majority of those that count has renewed → missing |
 * | missing | it voted no, was not heard, or lost the key | does not count: another client may have had the lock there | it took the hold → late |
 * | late | it took the hold late | does not count yet | a renewal that was sent since then, and that a majority of those that count confirmed → counts · it lost the key again → missing |
 *
 * **Why a late node counts behind such a renewal.** Another holder would have needed a majority of nodes, so one of those
 * that have just said that they have the hold, and count: they have never let go of it. From that moment on the late node is
 * a node like them.
 *
 * RACE: A has the lock by nodes 1 and 2. Node 2 forgets it; B gets nodes 2 and 3, and leaves again. Then node 3, or node 2,
 * takes A's hold. If it counted at once, A would have a majority once more, and never learn that B had come in between.
 * Here node 2 has lost the hold, so node 1 is alone: nothing confirms the late one, and A's lease is lost.
 *
 * RACE: A has the lock by all three. Node 1 forgets it, and any time later node 2. If node 1 had not taken the hold again
 * meanwhile, A would be left with node 3, and B could have the other two.
 */
export class Footprint {
  readonly keys: QuorumKeys;
  /** In the order of the nodes. */
  readonly standings: readonly Standing[];
  /** Does its end wake waiters? See `QuorumKind.attempt`. */
  wakes = true;
  /** Of a granted lease. */
  keeper: Keeper | null = null;
  #isLate: ((standing: Standing, vote: Granted) => boolean) | null = null;
  #changes = 0;

  constructor(keys: QuorumKeys, nodes: readonly QuorumNode[]) {
    this.keys = keys;
    this.standings = nodes.map((node) => new Standing(node));
  }

  /** So many nodes may have the hold. */
  get size(): number {
    return this.standings.filter(({ mayHave }) => mayHave).length;
  }

  /** A node was asked to take the hold. `saw` is called with its answer. */
  take(standing: Standing, asked: Promise<Vote>, saw?: (vote: Vote) => void): Promise<Vote> {
    return standing.take(asked, (vote) => {
      if (vote) saw?.(vote);
      if (!this.#isLate) return;
      this.#judge(standing);
      this.keeper?.heard();
    });
  }

  /** Has every node take the hold back that may have it. Rejects when one has not answered. */
  async erase(release: (standing: Standing) => Promise<unknown>): Promise<void> {
    this.keeper?.end();
    const tries = await Promise.allSettled(
      this.standings.map((standing) => standing.erase(() => release(standing))),
    );
    for (const one of tries) if (one.status === "rejected") throw one.reason;
  }

  /** The votes are decided. RACE: a vote that comes from now on may come behind the end of another client's hold. */
  decided(): void {
    for (const standing of this.standings) standing.isVoter = standing.vote?.is === "owner";
  }

  /** The lease is granted. `isLate`: does this vote come too late to be that of a voter? */
  granted(keeper: Keeper, isLate: (standing: Standing, vote: Granted) => boolean): void {
    this.keeper = keeper;
    this.#isLate = isLate;
    for (const standing of this.standings) if (!standing.isOut) this.#judge(standing);
    // Behind the last one: until all are judged, a node that voted no looks like one of the lease's.
    keeper.heard();
  }

  #judge(standing: Standing): void {
    const { vote } = standing;
    standing.isUnheard = false;
    if (vote?.is !== "owner") this.#set(standing, "missing");
    // RACE: a vote that is executed behind B's lease is as good as a hold that is taken behind it.
    else if (standing.is === "missing" || this.#isLate?.(standing, vote)) this.#set(standing, "late");
  }

  /** How many nodes count, and were last heard to have the hold. */
  get has(): number {
    return this.all("counts").filter(({ isUnheard }) => !isUnheard).length;
  }

  all(is: Standing["is"]): Standing[] {
    return this.standings.filter((standing) => standing.is === is);
  }

  /**
   * Of how many nodes could a word that has not come still count? `words`: those that have come.
   *
   * A node that is missing cannot have the hold, whatever it would say: where those that count have lost it, to wait for
   * that one is to believe in a lost lease.
   */
  unheard(words: readonly { readonly standing: Standing }[]): number {
    const from = new Set(words.map(({ standing }) => standing));
    return this.standings.filter((standing) => standing.is !== "missing" && !from.has(standing)).length;
  }

  /**
   * A renewal is sent to all nodes now. Returns what to do with each answer, when the nodes that count have renewed by a
   * majority.
   *
   * RACE: the node took the hold, or lost it, between this and its answer. Then the answer is of before that, and proves
   * nothing: only what the node was when the renewal was sent, and still is, can change by it.
   */
  renewing(): (standing: Standing, answer: RenewAnswer) => void {
    const before = this.#changes;
    this.keeper?.renewing();
    return (standing, { is }) => {
      standing.isUnheard = false;
      if (standing.change > before) return;
      if (is === "renewed") {
        if (standing.is === "late") this.#set(standing, "counts");
      } else if (standing.is !== "missing") {
        this.#set(standing, "missing");
        this.keeper?.broke();
      }
    };
  }

  #set(standing: Standing, is: Standing["is"]): void {
    standing.is = is;
    standing.change = ++this.#changes;
  }
}
