import type { Hold } from "../core/lease/hold.ts";
import type { Expecting, Inbox } from "../core/port.ts";
import { numberOf } from "../redis/hold-ids.ts";
import { decodeMessage } from "../redis/messages.ts";
import { isRefusal } from "../redis/replies.ts";
import type { Subscriptions } from "../redis/transport.ts";

/**
 * Receives this client's grants: on its own channel; in Cluster, on one channel for each slot in
 * use. Routes each message to the place or shared hold that has the hold it names.
 *
 * Every client that may PUBLISH can write a message, and a channel's name is no secret; a hold's id
 * is. So a message counts only for a hold that this client made. Any other message makes the client
 * send nothing (R3).
 */
export class GrantInbox implements Inbox {
  readonly subscriptions: Subscriptions;
  /** The client's own channel for a lock. */
  readonly channelOf: (name: string) => string;
  readonly #owner: InboxOwner;
  /** Receives a hold's messages, by the hold's number: V8 would hash each long id twice. */
  readonly #expected = new Map<number, Expecting>();
  /** Receives the answer to a question of this client, by its nonce. */
  readonly asked = new Map<string, (is: "busy" | "idle") => void>();
  readonly #own = new Set<string>();
  /** The last answer of `look`, which the next one usually repeats. */
  #seen: Seen = { name: "", isHeard: false, counted: false };
  /** Own channels whose subscription failed, or took too long, and was not refused. */
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

  expect({ number }: Hold, expecting: Expecting): void {
    this.#expected.set(number, expecting);
  }

  forget({ number }: Hold): void {
    this.#expected.delete(number);
  }

  isExpected({ number }: Hold): boolean {
    return this.#expected.has(number);
  }

  readonly #read = (text: string): void => {
    const message = decodeMessage(text);
    if (!message) return;
    if (!("hold" in message)) {
      this.asked.get(message.nonce)?.(message.is);
      return;
    }
    const { is, hold, key } = message;
    const expected = this.#expected.get(numberOf(hold));
    // RACE: not only the number, which is no secret.
    if (expected?.hold?.id === hold) {
      if (is === "grant") expected.granted(message);
      else if (is === "recall") expected.recalled(message.nonce, message.isQuestion);
      else if (is === "ready") expected.ready?.();
      else expected.revoked(message.by);
    }
    // Any client may write a message about a hold that is not ours.
    else if (is !== "revoked" && is !== "ready" && this.#owner.isMade(hold))
      this.#owner.unexpected(hold, key, is === "grant" ? message.ttl : null);
  };

  // ---- subscriptions

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
   * Connects and subscribes while the first command of the first call that may wait is under way,
   * so that a caller that finds the lock held saves that time. Only once, because most locks are
   * free, and in Cluster each slot has a channel.
   */
  prepare(channel: string): void {
    if (this.#own.size === 0) this.ready(channel).catch(() => {});
  }

  look(name: string): Seen {
    const isHeard = this.subscriptions.isReady(name);
    const counted = isHeard && this.subscriptions.isCounted(name);
    const { name: last, isHeard: wasHeard, counted: wasCounted } = this.#seen;
    if (last !== name || wasHeard !== isHeard || wasCounted !== counted)
      this.#seen = { name, isHeard, counted };
    return this.#seen;
  }

  /** The same, from the next time that the connection is ready. */
  listen(channel: string): void {
    if (this.#own.has(channel)) return;
    this.#own.add(channel);
    this.subscriptions.listen(channel, this.#read);
  }

  /** Channels that no caller has requested are subscribed to again. */
  recovered(): void {
    for (const channel of this.#unheard)
      if (this.subscriptions.isReady(channel)) this.#unheard.delete(channel);
  }

  /** Has subscribing to this channel failed, for now? */
  isUnheard(channel: string): boolean {
    return this.#unheard.has(channel) && !this.subscriptions.isReady(channel);
  }

  /**
   * Does this client receive every message for its holds at that lock? Called for each acquisition,
   * usually while nothing is subscribed.
   */
  hears(name: string): boolean {
    return this.#own.size > 0 && this.subscriptions.isReady(this.channelOf(name));
  }
}

type Seen = ReturnType<Inbox["look"]>;

/** What an inbox needs of its client. */
interface InboxOwner {
  /** Did this client make the hold with this id? */
  isMade(hold: string): boolean;
  /**
   * Redis has given a lock to a hold of this client that has ended, or that no caller waits for any
   * more: the lock's key, and the grant's ms; null: another client reports that the hold owns it.
   */
  unexpected(hold: string, key: string, ttl: number | null): void;
  /** A channel is subscribed to from now on, or is unavailable. */
  settled(): void;
}
