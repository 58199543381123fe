import { isRefusal } from "../redis/replies.ts";
import type { Subscriptions } from "../redis/subscriptions.ts";
import type { Ask } from "./lock-kind.ts";

/** What a client hears, and what it must do without for now. */
export class Hearing {
  readonly subscriptions: Subscriptions;
  /** The client's own channel for a lock: there is one, or in Cluster one for each slot in use. */
  readonly grantChannel: (name: string) => string;
  readonly #heard: (message: string) => void;
  readonly #own = new Set<string>();
  /** Own channels whose subscription has failed, or has taken too long, and was not refused. */
  readonly #unheard = new Set<string>();

  /** Called when one more channel must do without. */
  onDeaf: () => void = () => {};

  /** `heard`: told of every message on an own channel. */
  constructor(
    subscribe: (isOwn: (channel: string) => boolean) => Subscriptions,
    grantChannel: (name: string) => string,
    heard: (message: string) => void,
  ) {
    this.grantChannel = grantChannel;
    this.#heard = heard;
    this.subscriptions = subscribe((channel) => this.#own.has(channel));
  }

  /** Grants on this channel are for the client, from its next acknowledgement on. */
  listen(channel: string): void {
    if (this.#own.has(channel)) return;
    this.#own.add(channel);
    this.subscriptions.listen(channel, this.#heard);
  }

  /** Resolves when this channel is acknowledged. */
  async ready(channel: string): Promise<void> {
    try {
      await this.subscriptions.ready(channel);
    } catch (error) {
      if (isRefusal(error)) this.#unheard.delete(channel);
      else if (this.#own.has(channel) && !this.isUnheard(channel)) {
        this.#unheard.add(channel);
        this.onDeaf();
      }
      throw error;
    }
    this.#unheard.delete(channel);
  }

  /** Channels are heard again that nobody has asked for. */
  recovered(): void {
    for (const channel of this.#unheard)
      if (this.subscriptions.isReady(channel)) this.#unheard.delete(channel);
  }

  /** Has subscribing to this channel failed, for now? */
  isUnheard(channel: string): boolean {
    return this.#unheard.has(channel) && !this.subscriptions.isReady(channel);
  }

  /** Where grants are heard; null while they are not, or, `always`, where they will be. */
  told(channel: string, always: boolean): Ask["channel"] {
    if (this.subscriptions.isReady(channel))
      return { name: channel, isHeard: true, counted: this.subscriptions.isCounted(channel) };
    return always ? { name: channel, isHeard: false, counted: false } : null;
  }
}
