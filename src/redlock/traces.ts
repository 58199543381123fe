import type { QuorumNode } from "./node.ts";

/** Where a hold may be: the nodes that were told of it and have not said that it is not there. R3 for each node by itself. */
export class Traces {
  /** Each with the last command about the hold. */
  readonly #nodes = new Map<QuorumNode, Promise<unknown>>();
  /** Does its end wake waiters? A minority's votes were never a lock: waiters that they refuse come back by themselves. */
  wakes = true;

  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** A command that names the hold goes to this node. `isGone`: does this answer say that the hold is not there? */
  follow<A>(node: QuorumNode, command: Promise<A>, isGone: (answer: A) => boolean): Promise<A> {
    this.#nodes.set(node, command);
    return command.then((answer) => {
      if (isGone(answer)) this.#nodes.delete(node);
      return answer;
    });
  }

  /** Has every node take the hold back that may have it. Rejects when one has not answered. */
  async erase(release: (node: QuorumNode) => Promise<unknown>): Promise<void> {
    const tries = [...this.#nodes].map(async ([node, last]) => {
      // A vote that comes late may be a no; a release may be answered yet. Else it went out before ours, and the node
      // answers in order: a late yes is taken back.
      await last.catch(() => {});
      if (this.#nodes.has(node)) await this.follow(node, release(node), () => true);
    });
    const failure = (await Promise.allSettled(tries)).find(({ status }) => status === "rejected");
    if (failure?.status === "rejected") throw failure.reason;
  }
}
