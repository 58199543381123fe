import { NOT_CONNECTED, whyRefused } from "./chain.ts";
import { type Client, isReply, listenTo } from "./client.ts";
import type { Source, SourceEvents } from "./source.ts";

/**
 * The caller's client. Nothing on it is changed but a few listeners: connecting and closing it is
 * the caller's.
 */
export class Given implements Source {
  readonly #client: Client;
  #wasOpen: boolean;
  #stop: () => void = () => {};

  constructor(client: Client) {
    this.#client = client;
    this.#wasOpen = client.isOpen;
  }

  get client(): Client | null {
    return this.#client.isReady ? this.#client : null;
  }

  get state(): "ready" | "away" | "ended" {
    if (this.#client.isReady) return "ready";
    this.#wasOpen ||= this.#client.isOpen;
    return this.#wasOpen && !this.#client.isOpen ? "ended" : "away";
  }

  get status(): string {
    const { state } = this;
    if (state !== "away") return state === "ended" ? "end" : state;
    return this.#client.isOpen ? "connecting" : "wait";
  }

  get refusal(): Error | null {
    if (this.#client.isReady) return null;
    if (!this.#client.isOpen)
      return new Error(this.state === "ended" ? "The client is closed" : NOT_CONNECTED);
    return this.#client.options?.disableOfflineQueue
      ? new Error("The client is offline (disableOfflineQueue is true)")
      : null;
  }

  open(events: SourceEvents): void {
    let isEnded = false;
    let wasReady = this.#client.isReady;
    const end = (): void => {
      if (!isEnded) events.ended();
      isEnded = true;
    };
    this.#stop = listenTo(this.#client, {
      ready: () => {
        isEnded = false;
        wasReady = true;
        this.#wasOpen = true;
        events.ready();
      },
      error: (error: unknown) => {
        this.#print(error);
        // While it is ready, it tells of something else, such as a PING that failed.
        if (this.#client.isReady) return;
        isReply(error);
        const why = wasReady ? error : whyRefused(error);
        wasReady = false;
        events.lost(why);
        // It gives up: version 5 says it by nothing else.
        if (!this.#client.isOpen) end();
      },
      end: () => {
        events.lost(null);
        end();
      },
    });
  }

  close(): void {
    this.#stop();
  }

  replace(): boolean {
    return false;
  }

  /** Without our listener the error would have been thrown, and ended the process. */
  #print(error: unknown): void {
    if (this.#client.listenerCount("error") !== 1 || !(error instanceof Error)) return;
    console.error("[holdfast] Unhandled error event:", error.stack);
  }
}
