import { Keys } from "../keys.ts";
import type { Transport } from "../redis/transport.ts";
import type { RedisLike } from "../redis/types.ts";
import type { Footprint } from "./footprint.ts";
import { QuorumNode, type Registry } from "./node.ts";
import type { NodeSettings } from "./node-commands.ts";
import type { Standing } from "./standing.ts";
import type { Tally } from "./votes.ts";

/** What one node has said about a hold. */
interface Word<A> {
  readonly standing: Standing;
  readonly answer: A;
}

/**
 * The masters of a quorum as one thing that carries a client's commands. Protects callers from single nodes: none of them
 * is waited for when the others have decided, and a command for which there are too few is refused with every node's reason.
 */
export class Quorum implements Transport {
  readonly nodes: readonly QuorumNode[];
  readonly replyTimeout: number;
  /** Of no node: each has a prefix of its own. */
  readonly keys = new Keys("", false);
  onReconnect: () => void = () => {};
  onEnd: () => void = () => {};
  /** Two nodes, by their numbers, have said that they are the same server. */
  onTwin: (node: number, other: number) => void = () => {};

  constructor(connections: readonly RedisLike[], settings: NodeSettings) {
    const registry: Registry = new Map();
    this.nodes = connections.map((redis, i) => new QuorumNode(i + 1, redis, settings, registry));
    this.replyTimeout = settings.replyTimeout;
    for (const node of this.nodes) {
      node.onReconnect = () => this.onReconnect();
      node.onTwin = (other) => this.onTwin(node.number, other);
      node.commands.onEnd = () => {
        if (this.ended) this.onEnd();
      };
    }
  }

  get majority(): number {
    return Math.floor(this.nodes.length / 2) + 1;
  }

  get epoch(): number {
    return this.nodes.reduce((sum, { commands }) => sum + commands.epoch, 0);
  }

  get heldUntil(): number {
    return Math.max(...this.nodes.map(({ commands }) => commands.heldUntil));
  }

  get isAway(): boolean {
    return this.#isTooMany(({ commands }) => commands.isAway || commands.ended);
  }

  get ended(): boolean {
    return this.#isTooMany(({ commands }) => commands.ended);
  }

  mayHaveReached(since: number): boolean {
    return this.nodes.some(({ commands }) => commands.mayHaveReached(since));
  }

  trouble(): Error {
    const away = this.nodes.filter(({ commands }) => commands.isAway);
    return noMajority(
      this.nodes.length,
      away.map((node) => node.trouble()),
    );
  }

  detach(): void {
    for (const node of this.nodes) node.detach();
  }

  /**
   * Asks every node that can answer about the hold of this footprint; the others are errors at once. A node that hangs is
   * asked too where those that count are no majority without it. `isVote`: young nodes are not asked.
   */
  ask<A>(
    { keys, standings }: Footprint,
    send: (standing: Standing) => Promise<A>,
    isVote = false,
  ): Promise<A>[] {
    let helpful = 0;
    for (const standing of standings) if (standing.look(isVote) && standing.is === "counts") helpful++;
    const isNeeded = helpful < this.majority;
    return standings.map((standing) => {
      const { isLive, node, state } = standing;
      if (isLive || (isNeeded && state === "silent")) return send(standing);
      return Promise.reject(node.refusal(state, keys));
    });
  }

  /**
   * Resolves with the first decision: when it is made, the nodes that have not answered are not waited for. Rejects when
   * there can be none.
   */
  count<A, D>(asked: readonly Promise<A>[], decide: (tally: Tally<A>) => D | undefined): Promise<D> {
    const { majority } = this;
    const nodes = asked.length;
    return new Promise((resolve, reject) => {
      const answers: A[] = [];
      const errors: Error[] = [];
      let pending = nodes;
      let isDecided = false;
      const look = (): void => {
        pending--;
        if (isDecided) return;
        try {
          const decision = decide({ answers, pending, nodes, majority });
          isDecided = decision !== undefined;
          if (decision !== undefined) resolve(decision);
          else if (pending === 0 || answers.length + pending < majority)
            // After the next turn of the event loop: a caller that tries again at once must not keep ioredis from connecting.
            setImmediate(() => reject(noMajority(nodes, errors)));
        } catch (error) {
          reject(error);
        }
      };
      for (const [i, one] of asked.entries())
        one.then(
          (answer) => {
            answers.push(answer);
            look();
          },
          (error: Error) => {
            errors[i] = error; // in the order of the nodes
            look();
          },
        );
    });
  }

  /**
   * Sends a command about a hold to every node. `yes`: the answer of a node that has the hold, or had it. Decides for the
   * answers of a majority that counts and said yes, or says why there can be none.
   */
  consult<A extends { readonly is: string }>(
    footprint: Footprint,
    yes: A["is"],
    send: (standing: Standing) => Promise<A>,
  ): { words: Promise<Word<A>>[]; decision: Promise<readonly A[] | "gone" | "taken"> } {
    const words = this.ask(footprint, async (standing) => {
      const answer = await send(standing);
      if (answer.is === yes && standing.isOut) await standing.heard();
      return { standing, answer };
    });
    const decision = this.count(words, ({ answers, majority }) => {
      const counted = answers.filter(({ standing, answer }) => answer.is === yes && standing.is === "counts");
      if (counted.length >= majority) return counted.map(({ answer }) => answer);
      // Gone is only said when so many nodes have said so; one that does not answer may still have it.
      if (counted.length + footprint.unheard(answers) >= majority) return undefined;
      return answers.some(({ answer }) => answer.is === "taken") ? "taken" : "gone";
    });
    return { words, decision };
  }

  /** The nodes that this is true of are so many that the others are no majority. */
  #isTooMany(isTrue: (node: QuorumNode) => boolean): boolean {
    return this.nodes.filter((node) => !isTrue(node)).length < this.majority;
  }
}

function noMajority(nodes: number, errors: readonly Error[]): Error {
  const known = errors.filter((error) => error !== undefined);
  const reasons = known.map(({ message }) => message).join("; ");
  return new AggregateError(known, `no majority of ${nodes} nodes${reasons === "" ? "" : ` (${reasons})`}`);
}
