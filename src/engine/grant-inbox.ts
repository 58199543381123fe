import { decodeMessage } from "../redis/messages.ts";
import { isRefusal } from "../redis/replies.ts";
import type { Subscriptions } from "../redis/transport.ts";
import type { Grant, Hold } from "./lease/hold.ts";

/**
 * Where a client hears of grants: its own channel, in Cluster one for each slot in use. It brings
 * each message to the acquisition or lease whose hold the message names.
 *
 * Every client that may PUBLISH can write a message, and the name of a channel is no secret; the id
 * of a hold is. So a message counts only for a hold that this client made, and no other one makes
 * the client send anything (R3).
 */
export class GrantInbox {
  readonly subscriptions: Subscriptions;
  /** The client's own channel for a lock. */
  readonly channelOf: (name: string) => string;
  readonly #owner: InboxOwner;
  /** What is told of a hold's messages, by its id. */
  readonly expected = new Map<string, Expecting>();
  /** What is told of the answer to a question of this client, by its nonce. */
  readonly asked = new Map<string, (is: "busy" | "idle") => void>();
  readonly #own = new Set<string>();
  /** Own channels whose subscription has failed, or has taken too long, and was not refused. */
  readonly #unheard = new Set<string>();

  constructor(
    subscribe: (isOwn: (channel: string) => boolean) => Subscriptions,
    channelOf: (name: string) => string,
    owner: InboxOwner,
  ) {
    this.channelOf = channelOf;
    this.#owner = owner;
    this.subscriptions = subscribe((channel) => this.#own.has(channel));
  }

  // ---- messages

  forget(hold: Hold): void {
    this.expected.delete(hold.id);
  }

  readonly #read = (text: string): void => {
    const message = decodeMessage(text);
    if (!message) return;
    if (!("hold" in message)) {
      this.asked.get(message.nonce)?.(message.is);
      return;
    }
    const { hold } = message;
    const expected = this.expected.get(hold);
    if (message.is === "revoked") expected?.revoked(hold, message.by);
    // Of a hold that is not ours nothing is said: anybody may have written it.
    else if (message.is === "recall") expected?.recalled(hold, message.nonce, message.isQuestion);
    else if (!expected?.granted(hold, message) && this.#owner.isMade(hold))
      this.#owner.unexpected(hold, message.key, message.ttl);
  };

  // ---- hearing them

  /** Grants on this channel are for the client. Resolves when the channel is acknowledged. */
  async ready(channel: string): Promise<void> {
    this.listen(channel);
    try {
      await this.subscriptions.ready(channel);
    } catch (error) {
      if (isRefusal(error)) this.#unheard.delete(channel);
      else if (!this.isUnheard(channel)) {
        this.#unheard.add(channel);
        this.#owner.settled();
      }
      throw error;
    }
    this.#unheard.delete(channel);
  }

  /**
   * Connects and subscribes while the first command of the first call that may wait is under way: a
   * caller that finds the lock held need not begin with that. Once, because most locks are free,
   * and in Cluster each slot has a channel.
   */
  prepare(channel: string): void {
    if (this.#own.size === 0) this.ready(channel).catch(() => {});
  }

  /** The same from the next time on that the connection is ready. */
  listen(channel: string): void {
    if (this.#own.has(channel)) return;
    this.#own.add(channel);
    this.subscriptions.listen(channel, this.#read);
  }

  /** Channels are heard again that no caller has asked for. */
  recovered(): void {
    for (const channel of this.#unheard)
      if (this.subscriptions.isReady(channel)) this.#unheard.delete(channel);
  }

  /** Has subscribing to this channel failed, for now? */
  isUnheard(channel: string): boolean {
    return this.#unheard.has(channel) && !this.subscriptions.isReady(channel);
  }

  /**
   * Is every message for a hold of this client at that lock heard? Asked for each acquisition,
   * mostly where nothing is subscribed.
   */
  hears(name: string): boolean {
    return this.#own.size > 0 && this.subscriptions.isReady(this.channelOf(name));
  }
}

/** What is told of a hold's messages. */
export interface Expecting {
  /** False: the hold is not wanted any more, so it must be left (R3). */
  granted(hold: string, grant: Grant): boolean;
  /** `by`: the label of the caller that took it away; null: not told. */
  revoked(hold: string, by: string | null): void;
  /** Somebody else wants the lock. See the message `recall`. */
  recalled(hold: string, nonce: string | null, isQuestion: boolean): void;
}

/** What an inbox asks of its client. */
interface InboxOwner {
  /** Did this client make the hold with this id? */
  isMade(hold: string): boolean;
  /**
   * A lock was granted to a hold of this client that no caller waits with any more: the lock's key,
   * and the grant's ms.
   */
  unexpected(hold: string, key: string, ttl: number): void;
  /** A channel is heard from now on, or must be done without. */
  settled(): void;
}
