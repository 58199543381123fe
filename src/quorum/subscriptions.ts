import { WAKE_SPREAD } from "../defaults.ts";
import { Subscriber } from "../redis/subscriber.ts";
import type { Audience, Subscriptions } from "../redis/transport.ts";
import { clearTimeout, setTimeout } from "../util/real-timers.ts";
import type { QuorumNode } from "./node.ts";
import { channelAt } from "./node-commands.ts";
import type { Quorum } from "./quorum.ts";

/**
 * The release channels of a quorum: a subscriber connection to each node.
 *
 * A release that frees a majority runs, and is published, at a majority of nodes. So a client that
 * hears all nodes but a minority hears every release at one node at least: then it is ready, and a
 * node that hangs holds nobody up.
 *
 * A release comes once from each node. A try after the first word would often find the lock held at
 * the others, so a waiter is woken when a majority may be free: the nodes that have told, and those
 * that it does not hear. A node may hang in between; so a first word counts after a while however
 * few have followed.
 *
 * RACE: one node is not heard, so the first word of three wakes. The release has not reached the
 * other two yet: the try finds the lock held there, and sleeps for the holder's time. So each
 * further word wakes again, until a majority has told; and where none comes, time does.
 */
export class QuorumSubscriptions implements Subscriptions {
  readonly #quorum: Quorum;
  readonly #subscribers: Map<QuorumNode, Subscriber>;
  readonly #timers = new Set<NodeJS.Timeout>();

  onGap: () => void = () => {};

  constructor(quorum: Quorum, { isWanted }: Audience) {
    this.#quorum = quorum;
    this.#subscribers = new Map(
      quorum.nodes.map((node) => {
        const source = { place: node.link, isSharded: false, isOwn: () => false, isWanted };
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
        // RACE: one that was acknowledged is lost again before the next one is.
        throw new Error("the subscriber connections were lost again");
      },
    );
  }

  /** Kinds without grants miss no message that anybody could tell of. */
  async selfTest(): Promise<void> {}

  async recount(): Promise<void> {}

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const subscriber of this.#subscribers.values()) subscriber.close();
  }

  /** So many nodes that every majority has one of them. */
  get #enough(): number {
    return this.#quorum.nodes.length - this.#quorum.majority + 1;
  }

  #heard(channel: string): number {
    return [...this.#subscribers].filter(([node, one]) => one.isReady(channelAt(node, channel))).length;
  }

  /** `words`: of each release, the nodes that it was heard from. */
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
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        words.delete(hold);
        // RACE: those that are not heard made up a majority at once, when it was released at fewer.
        // It is by now; but what has come last was not heard, and to another node, which would
        // tell, the release may never come.
        if (from.size < this.#quorum.majority) listener(hold);
      }, WAKE_SPREAD).unref();
      this.#timers.add(timer);
    }
    const silent = this.#quorum.nodes.length - this.#heard(channel);
    if (from.size + silent >= this.#quorum.majority && from.size <= this.#quorum.majority) listener(hold);
  }
}
