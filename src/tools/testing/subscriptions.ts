import type { Subscriptions } from "../../redis/transport.ts";
import type { Memory } from "./memory.ts";

type Listener = (message: string) => void;

/** A client's subscriptions in a memory: no message is ever missed. */
export class MemorySubscriptions implements Subscriptions {
  readonly #memory: Memory;
  /**
   * By channel: this client's listeners, and the one registered at the memory; null before the
   * channel is subscribed to.
   */
  readonly #channels = new Map<string, { readonly listeners: Set<Listener>; heard: Listener | null }>();
  onGap = (): void => {};

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  isReady(channel: string): boolean {
    return !!this.#channels.get(channel)?.heard;
  }

  isCounted(): boolean {
    return true;
  }

  listen(channel: string, listener: Listener): () => void {
    const known = this.#channels.get(channel) ?? { listeners: new Set(), heard: null };
    this.#channels.set(channel, known);
    known.listeners.add(listener);
    return () => {
      known.listeners.delete(listener);
      if (known.listeners.size === 0) this.#end(channel);
    };
  }

  ready(channel: string): Promise<void> {
    const known = this.#channels.get(channel);
    return new Promise((resolve) => {
      this.#memory.soon(() => {
        if (known && !known.heard && this.#channels.get(channel) === known) {
          known.heard = (message) => {
            for (const listener of [...known.listeners]) listener(message);
          };
          this.#memory.listen(channel, known.heard);
        }
        resolve();
      });
    });
  }

  async selfTest(): Promise<void> {}

  deafness(): readonly string[] {
    return [];
  }

  async recount(): Promise<void> {}

  close(): void {
    for (const channel of [...this.#channels.keys()]) this.#end(channel);
  }

  #end(channel: string): void {
    const heard = this.#channels.get(channel)?.heard;
    this.#channels.delete(channel);
    if (heard) this.#memory.unlisten(channel, heard);
  }
}
