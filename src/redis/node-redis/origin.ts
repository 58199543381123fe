import type { Owner } from "./chain.ts";
import type { Client } from "./client.ts";

/** Where a link leads, and how clients of our own get there. */
export interface Origin {
  readonly kind: "server" | "sentinel";
  /** For a node of a Cluster; otherwise "". */
  readonly address: string;
  readonly name: string;
  readonly isTls: boolean;
  readonly keyPrefix: string;
  /** The caller's client, which its link uses; undefined: clients of our own. */
  readonly given?: Client;
  /** Our clients end with it. */
  readonly owner: Owner | null;
  make(): Client | Promise<Client>;
  /** A server that its clients lead to is a replica, and takes no writes. */
  refused?(): void;
  pause(tries: number, error: unknown): number | null;
}
