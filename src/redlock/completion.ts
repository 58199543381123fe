import { CLOCK_DRIFT, CLOCK_GRAIN, COMPLETION_MIN, RETRY_MAX } from "../defaults.ts";
import type { RenewAnswer } from "../scripts/answers.ts";
import type { Vote } from "../scripts/quorum.ts";
import type { QuorumNode } from "./node.ts";

/** What is done for a lease, and when it ends. Times in ms. */
interface Errands {
  /** What is left of the lease. */
  left(): number;
  /** Asks one more node to take the hold, for so long. */
  join(node: QuorumNode, ttl: number): Promise<Vote>;
  /** Takes the hold back at this node. */
  leave(node: QuorumNode): void;
  /** Asks the nodes whether a majority of those that count still has the hold. */
  confirm(ttl: number): Promise<RenewAnswer>;
  /** There is nothing left to do: every node counts, or the lease is over. */
  done(): void;
}

/**
 * Brings a lease to the nodes that did not vote for it. The loser of a race gives its votes back, a node that was down
 * comes back: without this the lease would stand on a bare majority to its end, and one fault would be one too many.
 *
 * | a node | counts as one that has the hold | leaves it by |
 * |---|---|---|
 * | voted yes | yes; where it lost the key it is never asked to take it again | – |
 * | missing: it voted no, or was not heard | no | took the hold → a guest |
 * | a guest: took it after the others, or behind somebody else | no | a majority of those that count was seen to have the hold since → as one that voted |
 *
 * RACE: A has the lock by nodes 1 and 2. Node 2 forgets it; B gets nodes 2 and 3, and leaves again. Now node 3 takes A's
 * hold. If it counted, A would have a majority once more, and never learn that B had come in between. So it counts only
 * when the others were seen whole behind that: B's majority would have had one of them, which has not let go of A's hold.
 *
 * It costs nothing when all have voted yes. Else a command to each node that is missing, after 10, 20, 40 … 2 000 ms, and
 * one to each node where one has joined.
 */
export class Completion {
  readonly #errands: Errands;
  readonly #missing = new Set<QuorumNode>();
  readonly #guests = new Set<QuorumNode>();
  readonly #heard = new Map<QuorumNode, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  #isOver = false;

  /** `votes`: of the nodes, in their order. `token`: that of the lease. */
  constructor(
    nodes: readonly QuorumNode[],
    votes: readonly Promise<Vote>[],
    token: number,
    errands: Errands,
  ) {
    this.#errands = errands;
    for (const [i, node] of nodes.entries()) this.#heard.set(node, this.#hear(node, votes[i], token));
    // A node whose vote is still out is not asked again before that is heard, or given up.
    void Promise.all(this.#heard.values()).then(() => this.#goOn());
  }

  async #hear(node: QuorumNode, asked: Promise<Vote> | undefined, token: number): Promise<void> {
    const vote = await asked?.catch(() => null);
    if (vote?.is !== "owner") this.#missing.add(node);
    // RACE: the same with a vote that is executed late, behind B's lease. Its token is behind B's, too: larger than ours.
    else if (vote.token > token) this.#guests.add(node);
  }

  /** Is what this node says about the hold the word of one that voted for it? A vote that is still out may be a yes. */
  counts(node: QuorumNode): boolean {
    return !this.#missing.has(node) && !this.#guests.has(node);
  }

  /**
   * To be waited for before a node's word that it has, or had, the hold is judged.
   *
   * RACE: its late vote and that word come in one packet. The vote is the first to be read, and not the first to get here.
   */
  async heard(node: QuorumNode): Promise<void> {
    await this.#heard.get(node);
  }

  /** RACE: the lease ends. From now on nothing is sent that could bring the hold to a node behind its release. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #goOn(): void {
    if (this.#isOver) return;
    if (this.#missing.size + this.#guests.size === 0) this.#errands.done();
    else {
      const delay = Math.min(RETRY_MAX, COMPLETION_MIN * 2 ** Math.min(this.#tries++, 10));
      this.#timer = setTimeout(() => void this.#try(), delay).unref();
    }
  }

  async #try(): Promise<void> {
    const left = this.#errands.left();
    if (left <= 0) return this.#errands.done();
    await Promise.all([...this.#missing].map((node) => this.#join(node, ttlFor(left))));
    if (this.#isOver) return;
    if (this.#guests.size === 0 || (await this.#confirm())) this.#goOn();
    // The lease is lost. Its guests would hold up who comes next, and never count for it.
    else for (const node of this.#guests) this.#errands.leave(node);
  }

  #join(node: QuorumNode, ttl: number): Promise<void> {
    const joined = this.#errands.join(node, ttl).then(
      ({ is }) => {
        if (is === "owner" && this.#missing.delete(node)) this.#guests.add(node);
      },
      () => {},
    );
    this.#heard.set(node, joined);
    return joined;
  }

  /** False: the lease is lost, whatever its guests have. Where too few answer, it is asked again. */
  async #confirm(): Promise<boolean> {
    const guests = [...this.#guests];
    // Also where a renewal has overtaken the joining: then the guests get what is left now.
    const answer = await this.#errands.confirm(ttlFor(this.#errands.left())).catch(() => null);
    if (answer?.is === "renewed") for (const node of guests) this.#guests.delete(node);
    return answer === null || answer.is === "renewed";
  }
}

/** The TTL that a node must set now so that its key ends with the lease, not before and not after: see `Validity`. */
const ttlFor = (left: number): number => Math.max(1, Math.floor((left + CLOCK_GRAIN) / (1 - CLOCK_DRIFT)));
