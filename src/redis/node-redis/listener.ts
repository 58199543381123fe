import type { Listener, ListenerEvents } from "../driver.ts";
import { Chain, soon } from "./chain.ts";
import { type Client, isReply, listenTo } from "./client.ts";

/**
 * A connection for messages. Each of its lives is a new client, so nothing is subscribed again by
 * node-redis.
 *
 * RACE: a slot moves while SSUBSCRIBE is on its way, and version 5 and 6 take the server's
 * SUNSUBSCRIBE for the answer to it. Either an answer is left over at the end, which counts as a
 * slot that has moved, or one is missing, which is an error: every error ends this life, and in the
 * next all channels are asked for again.
 */
export class NodeListener implements Listener {
  readonly #chain: Chain;
  readonly #isSharded: boolean;
  readonly #heard: (message: string, channel: string) => void;

  constructor(make: () => Client | Promise<Client>, isSharded: boolean, events: ListenerEvents) {
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
    );
    this.#chain.open({
      ready: () => events.ready(),
      lost(error) {
        if (isReply(error)) events.refused(error);
        events.lost();
      },
      ended: () => events.ended(),
    });
  }

  get isReady(): boolean {
    return this.#chain.client !== null;
  }

  /** Drops the connection, and opens another one. */
  replace(error: Error): void {
    this.#chain.replace(error);
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
    const done = this.#isSharded
      ? client?.sUnsubscribe([channel], this.#heard)
      : client?.unsubscribe([channel], this.#heard);
    done?.catch(() => {});
  }

  close(): void {
    this.#chain.close();
  }

  #prepared(client: Client, events: ListenerEvents): Client {
    listenTo(client, { "sharded-channel-moved": () => events.moved() });
    return client;
  }
}
