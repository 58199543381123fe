import { Keys } from "../keys.ts";
import type { Transport } from "../redis/transport.ts";
import type { RedisLike } from "../redis/types.ts";
import { QuorumNode } from "./node.ts";
import type { Registry } from "./node-identity.ts";

/** What has been answered so far by so many nodes. */
export interface Tally<A> {
  readonly answers: readonly A[];
  readonly pending: number;
}

/** The masters of a quorum, and as one thing what carries a client's commands. */
export class Quorum implements Transport {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
  readonly replyTimeout: number;
  /** Of no node: each has a prefix of its own. */
  readonly keys = new Keys("", false);
  onReconnect: () => void = () => {};
  onEnd: () => void = () => {};
  /** Two nodes, by their numbers, have said that they are the same server. */
  onTwin: (node: number, other: number) => void = () => {};

  constructor(connections: readonly RedisLike[], settings: ConstructorParameters<typeof QuorumNode>[2]) {
    const registry: Registry = new Map();
    this.nodes = connections.map((redis, i) => new QuorumNode(i + 1, redis, settings, registry));
    this.majority = majorityOf(connections.length);
    this.replyTimeout = settings.replyTimeout;
    for (const node of this.nodes) {
      node.onReconnect = () => this.onReconnect();
      node.onTwin = (other) => this.onTwin(node.number, other);
      node.commands.onEnd = () => {
        if (this.ended) this.onEnd();
      };
    }
  }

  get epoch(): number {
    return this.nodes.reduce((sum, { commands }) => sum + commands.epoch, 0);
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
    const absences = this.nodes.map((node) => (node.commands.isAway ? node.trouble() : undefined));
    return noMajority(this.nodes.length, absences);
  }

  detach(): void {
    for (const node of this.nodes) node.detach();
  }

  /**
   * Asks every node that can answer; the others are errors at once. A node that hangs is asked too where the others are
   * no majority: of those `counts` whose answer can help.
   */
  ask<A>(
    name: string,
    send: (node: QuorumNode) => Promise<A>,
    counts: (node: QuorumNode) => boolean = () => true,
  ): Promise<A>[] {
    const isNeeded = this.isMinority(this.nodes.filter((node) => node.isLive && counts(node)).length);
    return this.nodes.map((node) => {
      const absence = node.absence(name, isNeeded);
      return absence ? Promise.reject(absence) : send(node);
    });
  }

  /**
   * Resolves with the first decision: when it is made, the nodes that have not answered are not waited for. Rejects when
   * there can be none.
   */
  count<A, D>(asked: readonly Promise<A>[], decide: (tally: Tally<A>) => D | undefined): Promise<D> {
    return new Promise((resolve, reject) => {
      const answers: A[] = [];
      const errors: Error[] = [];
      let pending = asked.length;
      const look = (): void => {
        pending--;
        try {
          const decision = decide({ answers, pending });
          if (decision !== undefined) resolve(decision);
          else if (pending === 0 || this.isMinority(answers.length + pending))
            // After the next turn of the event loop: a caller that tries again at once must not keep ioredis from connecting.
            setImmediate(() => reject(noMajority(asked.length, errors)));
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

  isMajority(count: number): boolean {
    return count >= this.majority;
  }

  /** How many nodes have not answered, yet or at all. */
  unheard(answers: readonly unknown[]): number {
    return this.nodes.length - answers.length;
  }

  /** So many nodes are too few to decide anything. */
  isMinority(count: number): boolean {
    return count < this.majority;
  }

  /** The nodes that this is true of are so many that the others are no majority. */
  #isTooMany(isTrue: (node: QuorumNode) => boolean): boolean {
    return this.isMinority(this.nodes.filter((node) => !isTrue(node)).length);
  }
}

function noMajority(nodes: number, errors: readonly (Error | undefined)[]): Error {
  const known = errors.filter((error) => error !== undefined);
  const reasons = known.map(({ message }) => message).join("; ");
  return new AggregateError(known, `no majority of ${nodes} nodes${reasons === "" ? "" : ` (${reasons})`}`);
}

const majorityOf = (nodes: number): number => Math.floor(nodes / 2) + 1;
