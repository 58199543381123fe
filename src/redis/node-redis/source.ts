import type { Client } from "./client.ts";

/** Where the client of a link comes from: it is the caller's, or a sequence of our own. */
export interface Source {
  /** The client, while it is ready. */
  readonly client: Client | null;
  readonly state: "ready" | "away" | "ended";
  /** node-redis has no word for it: this is ioredis's. */
  readonly status: string;
  /** Why a command sent now cannot wait for a client; null: it can. */
  readonly refusal: Error | null;
  /** Starts notifying, and connects if that is its job. */
  open(events: SourceEvents): void;
  /** Stops notifying. A client of our own is closed. */
  close(): void;
  /** Replaces a client of our own that is ready. False: there is none. */
  replace(error: Error): boolean;
}

export interface SourceEvents {
  ready(): void;
  /** Lost, or a connection attempt has failed. */
  lost(error: unknown): void;
  ended(): void;
}
