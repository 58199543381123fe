import { NotAskedError, type QuorumNode } from "./node.ts";

/** What was sent to a node about a hold. */
interface Trace {
  /** Settles when all of it is answered, or was given up. */
  readonly last: Promise<void>;
  /** The last vote that it was asked for. */
  readonly vote: { isOut: boolean };
}

/** Where a hold may be: the nodes that were told of it and have not said that it is not there. R3 for each node by itself. */
export class Footprint {
  readonly #nodes = new Map<QuorumNode, Trace>();
  /** Does its end wake waiters? See `QuorumKind.attempt`. */
  wakes = true;

  get size(): number {
    return this.#nodes.size;
  }

  /** The node is asked for its vote. `isNo`: does this answer say that the hold is not there? */
  voting<A>(node: QuorumNode, vote: Promise<A>, isNo: (answer: A) => boolean): Promise<A> {
    const trace = this.#add(node, vote, { isOut: true });
    return vote
      .then(
        (answer) => {
          if (isNo(answer)) this.#nodes.delete(node);
          return answer;
        },
        (error: unknown) => {
          // Else a node that refuses to say which server it is would be asked, for a whole lease, to take back what it has never heard of.
          if (error instanceof NotAskedError) this.#nodes.delete(node);
          throw error;
        },
      )
      .finally(() => {
        trace.vote.isOut = false;
      });
  }

  /**
   * A further command about the hold goes to the node, which may not have heard of it. `isGone`: does this answer say that
   * the hold is not there?
   *
   * RACE: a majority has granted the lock and it is released, before the last node's vote is there. Then this command can
   * overtake the acquire, which waits for the node's introduction, or is sent once more because the script was not known.
   * So it takes back only what was voted on before it was sent; `erase` sends another one behind the vote.
   */
  follow<A>(node: QuorumNode, command: Promise<A>, isGone: (answer: A) => boolean): Promise<A> {
    const before = this.#nodes.get(node);
    if (!before) return command;
    this.#add(node, command, before.vote);
    const overtakes = before.vote.isOut;
    return command.then((answer) => {
      if (!overtakes && isGone(answer)) this.#nodes.delete(node);
      return answer;
    });
  }

  /** Has every node take the hold back that may have it. Rejects when one has not answered. */
  async erase(release: (node: QuorumNode) => Promise<unknown>): Promise<void> {
    const tries = [...this.#nodes].map(async ([node, { last }]) => {
      // A vote that comes late may be a no; a release may be answered yet.
      await last;
      if (!this.#nodes.has(node)) return;
      // All of it is answered, or was given up and lies on the connection before this one: a late yes is taken back.
      const command = release(node);
      this.#add(node, command, { isOut: false });
      await command;
      this.#nodes.delete(node);
    });
    const failure = (await Promise.allSettled(tries)).find(({ status }) => status === "rejected");
    if (failure?.status === "rejected") throw failure.reason;
  }

  /** Behind whatever was sent before. */
  #add(node: QuorumNode, command: Promise<unknown>, vote: Trace["vote"]): Trace {
    const before = this.#nodes.get(node);
    // Without the results, or each would keep those of the one before.
    const last = Promise.allSettled([before?.last, command]).then(() => {});
    const trace = { last, vote };
    this.#nodes.set(node, trace);
    return trace;
  }
}
