import type { Client } from "./client.ts";

/** Where the client of a link comes from: the caller's, or one after another of our own. */
export interface Source {
  /** The client, while it is ready. */
  readonly client: Client | null;
  readonly state: "ready" | "away" | "ended";
  /** node-redis has no word for it: the one that ioredis has. */
  readonly status: string;
  /** Why what is sent now cannot wait for a client; null: it can. */
  readonly refusal: Error | null;
  /** Tells from now on, and connects where that is its business. */
  open(events: SourceEvents): void;
  /** Tells no more. A client of our own is closed. */
  close(): void;
  /** Gives up a client of our own that is ready for another one. False: there is none. */
  replace(error: Error): boolean;
}

export interface SourceEvents {
  ready(): void;
  /** Lost, or a try to connect has failed. */
  lost(error: unknown): void;
  ended(): void;
}
