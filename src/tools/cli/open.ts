import type { createLockClient } from "../../index.ts";
import type { Target } from "./reach.ts";

/** A connection of one of the client libraries. */
export interface Connection {
  readonly redis: Parameters<typeof createLockClient>[0];
  /** Called before a command is sent on `redis` itself: it connects if it has not yet. */
  use(): void;
  close(): void;
}

/**
 * Opens a connection. `failed` is called with each error of it, a Cluster's excepted.
 *
 * @throws the connection's error; the signal's reason
 */
export type Open = (
  target: Target,
  failed: (error: Error) => void,
  signal: AbortSignal | undefined,
) => Promise<Connection>;
