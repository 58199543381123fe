import type { Link } from "../redis/driver.ts";
import { Keys } from "../redis/keys.ts";
import type { Transport } from "../redis/transport.ts";
import { setImmediate } from "../util/real-timers.ts";
import { QuorumNode, type Registry } from "./node.ts";
import type { NodeSettings } from "./node-commands.ts";
import type { Tally } from "./votes.ts";

/**
 * The masters of a quorum as one transport of a client's commands. Protects callers from single
 * nodes: none is waited for when the others have decided, and a command that too few can answer is
 * refused with every node's reason.
 */
export class Quorum implements Transport {
  readonly nodes: readonly QuorumNode[];
  readonly replyTimeout: number;
  /** Not a node's keys: each node has its own prefix. */
  readonly keys = new Keys("", false);
  onLost: () => void = () => {};
  onReconnect: () => void = () => {};
  onEnd: () => void = () => {};
  /** Two nodes, by their numbers, have said that they are the same server. */
  onTwin: (node: number, other: number) => void = () => {};

  constructor(links: readonly Link[], settings: NodeSettings) {
    const registry: Registry = new Map();
    this.nodes = links.map((link, i) => new QuorumNode(i + 1, link, settings, registry));
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

  /** Its holds are granted by no message, and recalled by none. */
  get unanswered(): [] {
    return [];
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

  flush(): void {
    for (const { commands } of this.nodes) commands.flush();
  }

  detach(): void {
    for (const { commands } of this.nodes) commands.detach();
  }

  /**
   * Resolves with the first decision, without waiting for the nodes that have not answered. Rejects
   * when there can be none, because fewer than `least` answer.
   */
  count<A, D>(
    asked: readonly Promise<A>[],
    decide: (tally: Tally<A>) => D | undefined,
    least = this.majority,
  ): Promise<D> {
    const { majority } = this;
    const nodes = asked.length;
    return new Promise((resolve, reject) => {
      const answers: A[] = [];
      const errors: Error[] = [];
      let pending = nodes;
      const look = (): void => {
        pending--;
        try {
          const decision = decide({ answers, pending, nodes, majority });
          if (decision !== undefined) resolve(decision);
          else if (pending === 0 || answers.length + pending < least)
            // After the next turn of the event loop: a caller that tries again at once must not
            // keep ioredis from connecting.
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

  /** Is this true of so many nodes that the others are no majority? */
  #isTooMany(isTrue: (node: QuorumNode) => boolean): boolean {
    return this.nodes.filter((node) => !isTrue(node)).length < this.majority;
  }
}

function noMajority(nodes: number, errors: readonly Error[]): Error {
  const known = errors.filter((error) => error !== undefined);
  const reasons = known.map(({ message }) => message).join("; ");
  return new AggregateError(known, `no majority of ${nodes} nodes${reasons === "" ? "" : ` (${reasons})`}`);
}
