import { WAKE_SPREAD } from "../defaults.ts";
import { Subscriber } from "../redis/subscriber.ts";
import type { Audience, Subscriptions } from "../redis/transport.ts";
import { clientTimer } from "../util/client-timer.ts";
import { clearTimeout } from "../util/real-timers.ts";
import type { QuorumNode } from "./node.ts";
import { channelAt } from "./node-commands.ts";
import type { Quorum } from "./quorum.ts";

/**
 * The release channels of a quorum: a subscriber connection to each node.
 *
 * A release that frees a majority runs, and is published, at a majority of nodes. So a client that
 * is subscribed to all nodes but a minority receives every release from at least one node: then it
 * is ready, and a node that hangs delays no caller.
 *
 * A release comes once from each node. A try after the first message would often find the lock held
 * at the others, so a waiter is woken when a majority may be free: the nodes that have reported the
 * release, and those without a subscription. A node may hang in between; so after a while a first
 * message counts, however few have followed.
 *
 * RACE: with one of three nodes not subscribed, the first message wakes. The release may not have
 * reached the other two yet: the try finds the lock held there, and would sleep for the holder's
 * time. So each further message wakes again, until a majority has reported; if none comes, a timer
 * wakes.
 */
export class QuorumSubscriptions implements Subscriptions {
  readonly #quorum: Quorum;
  readonly #subscribers: Map<QuorumNode, Subscriber>;
  readonly #timers = new Set<NodeJS.Timeout>();

  onGap: () => void = () => {};

  constructor(quorum: Quorum, { isWanted, deaf }: Audience) {
    this.#quorum = quorum;
    this.#subscribers = new Map(
      quorum.nodes.map((node) => {
        const source = { place: node.link, isSharded: false, isOwn: () => false, isWanted, deaf };
        const subscriber = new Subscriber(source, node.commands);
        subscriber.onGap = () => this.onGap();
        return [node, subscriber];
      }),
    );
  }

  isReady(channel: string): boolean {
    return this.#heard(channel) >= this.#enough;
  }

  isCounted(): boolean {
    return false;
  }

  listen(channel: string, listener: (message: string) => void): () => void {
    const words = new Map<string, Set<QuorumNode>>();
    const stops = [...this.#subscribers].map(([node, subscriber]) =>
      subscriber.listen(channelAt(node, channel), (hold) => this.#told(channel, words, hold, node, listener)),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }

  ready(channel: string): Promise<void> {
    if (this.isReady(channel)) return Promise.resolve();
    const all = [...this.#subscribers].map(([node, one]) => one.ready(channelAt(node, channel)));
    const ready = this.#quorum.count(all, () => this.isReady(channel) || undefined, this.#enough);
    return ready.then(
      () => {},
      ({ errors }: AggregateError) => {
        if (errors.length >= this.#quorum.majority) throw errors.at(-1);
        // RACE: an acknowledged subscription is lost again before the next one is acknowledged.
        throw new Error("the subscriber connections were lost again");
      },
    );
  }

  /** Kinds without grants have no message that could be detected as missed. */
  async selfTest(): Promise<void> {}

  deafness(): readonly string[] {
    return [...this.#subscribers.values()].flatMap((one) => one.deafness());
  }

  async recount(): Promise<void> {}

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const subscriber of this.#subscribers.values()) subscriber.close();
  }

  /** How many nodes are needed so that every majority includes one of them. */
  get #enough(): number {
    return this.#quorum.nodes.length - this.#quorum.majority + 1;
  }

  #heard(channel: string): number {
    return [...this.#subscribers].filter(([node, one]) => one.isReady(channelAt(node, channel))).length;
  }

  /** `words`: for each release, the nodes that reported it. */
  #told(
    channel: string,
    words: Map<string, Set<QuorumNode>>,
    hold: string,
    node: QuorumNode,
    listener: (message: string) => void,
  ): void {
    const known = words.get(hold);
    const from = known ?? new Set();
    from.add(node);
    if (!known) {
      words.set(hold, from);
      const timer = clientTimer(() => {
        this.#timers.delete(timer);
        words.delete(hold);
        // RACE: with the unsubscribed nodes, the count was a majority at once, although fewer had
        // released it. By now they have. But the last release may have come at a node without a
        // subscription, or may never reach a subscribed one: so wake again.
        if (from.size < this.#quorum.majority) listener(hold);
      }, WAKE_SPREAD);
      this.#timers.add(timer);
    }
    const silent = this.#quorum.nodes.length - this.#heard(channel);
    if (from.size + silent >= this.#quorum.majority && from.size <= this.#quorum.majority) listener(hold);
  }
}
