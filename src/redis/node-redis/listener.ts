import type { Listener, ListenerEvents } from "../driver.ts";
import { Chain, soon } from "./chain.ts";
import { type Client, isReply, listenTo } from "./client.ts";
import type { Origin } from "./origin.ts";

/**
 * A connection for messages. Each time it connects with a new client, so node-redis resubscribes
 * nothing.
 *
 * RACE: a slot moves while SSUBSCRIBE is under way, and versions 5 and 6 take the server's
 * SUNSUBSCRIBE for the answer to it. Then either one answer too many comes at the end, which counts
 * as a slot that has moved, or one is missing, which is an error. Every error ends this client, and
 * the next one subscribes all channels again.
 */
export class NodeListener implements Listener {
  readonly #chain: Chain;
  readonly #isSharded: boolean;
  readonly #heard: (message: string, channel: string) => void;

  constructor({ make, owner }: Pick<Origin, "make" | "owner">, isSharded: boolean, events: ListenerEvents) {
    this.#isSharded = isSharded;
    this.#heard = (message, channel) => events.message(channel, message);
    this.#chain = new Chain(
      () => {
        const made = make();
        return made instanceof Promise
          ? made.then((client) => this.#prepared(client, events))
          : this.#prepared(made, events);
      },
      (tries) => (events.isWanted() ? soon(tries) : null),
      owner,
    );
    this.#chain.open({
      ready: () => events.ready(),
      lost(error) {
        if (isReply(error)) events.refused(error);
        events.lost(error);
      },
      ended: () => events.ended(),
    });
  }

  get isReady(): boolean {
    return this.#chain.client !== null;
  }

  subscribe(channels: readonly string[]): Promise<unknown> {
    const { client } = this.#chain;
    if (!client) return Promise.reject(new Error("The client is offline"));
    const done = this.#isSharded
      ? client.sSubscribe(channels, this.#heard)
      : client.subscribe(channels, this.#heard);
    return done.catch((error) => {
      isReply(error);
      throw error;
    });
  }

  unsubscribe(channel: string): void {
    const { client } = this.#chain;
    try {
      const done = this.#isSharded
        ? client?.sUnsubscribe([channel], this.#heard)
        : client?.unsubscribe([channel], this.#heard);
      done?.catch(() => {});
    } catch {
      // A wrapped client: its messages are read, and reach no listener.
    }
  }

  close(): void {
    this.#chain.close();
  }

  #prepared(client: Client, events: ListenerEvents): Client {
    listenTo(client, { "sharded-channel-moved": () => events.moved() });
    return client;
  }
}
