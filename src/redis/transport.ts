import type { Keys } from "./keys.ts";

/**
 * What the lock manager needs to know of whatever carries the commands: one connection, or those to
 * the nodes of a quorum.
 */
export interface Transport {
  /** How long a command may stay unanswered, in ms. */
  readonly replyTimeout: number;
  readonly keys: Keys;
  /** Grows whenever a connection is lost. The same number before and after a command: it was sent once. */
  readonly epoch: number;
  /**
   * When commands were last written that the application had held back, on the monotonic clock: by
   * a blocked event loop right behind a call. How long Redis takes to answer counts from then on.
   * -Infinity: never.
   */
  readonly heldUntil: number;
  /** It was there and is lost, and may come back: commands would only pile up. */
  readonly isAway: boolean;
  /** It is closed for good. */
  readonly ended: boolean;
  /**
   * May a command that was sent then, on the monotonic clock, have reached Redis? Not while there
   * was no connection.
   */
  mayHaveReached(since: number): boolean;
  /**
   * Why Redis does not answer, as far as that is known: where it should be, the connection's state
   * and last error.
   */
  trouble(): Error;
  /** Writes what was sent in this turn of the event loop and is held back, to leave together. */
  flush(): void;
  /** Called when the connection is lost. */
  onLost: () => void;
  /** Called when the connection is there again after it was lost. */
  onReconnect: () => void;
  /** Called when the connection is closed for good. */
  onEnd: () => void;
  /** Takes the listeners off again. Commands that are on their way are still answered. */
  detach(): void;
}

/** Learns what becomes of a client's connections. */
export interface ConnectionListener {
  /** The connection for commands is there again. */
  reconnected(): void;
  /** The connection for commands is closed for good. */
  disconnected(): void;
  /** Messages may have been missed, and are received again. */
  missed(): void;
}

/** What carries messages asks of the lock manager. */
export interface Audience {
  /** Is this the client's own channel, where the number of receivers counts? */
  isOwn(channel: string): boolean;
  /** Is anybody waiting? */
  isWanted(): boolean;
}

/**
 * What the lock manager needs of whatever carries messages: one connection, or one for each node of
 * a Cluster.
 */
export interface Subscriptions {
  /** Called when messages may have been missed and are heard again. */
  onGap: () => void;

  /** Is every message of this channel heard from now on? */
  isReady(channel: string): boolean;

  /**
   * Does the number of receivers of a message on this channel prove anything? Not behind some
   * proxies and ACLs.
   */
  isCounted(channel: string): boolean;

  /** Hears a channel from the next `ready()` on. Returns how to stop. */
  listen(channel: string, listener: (message: string) => void): () => void;

  /**
   * Resolves when the channel is acknowledged. Rejects when SUBSCRIBE is refused or takes longer
   * than a command may.
   */
  ready(channel: string): Promise<void>;

  /**
   * A message of this channel was missed: is anybody listening at the other end? A deaf connection
   * is replaced.
   */
  selfTest(channel: string): Promise<void>;

  /** The connection for commands is back: believe the number of receivers again where it can be believed. */
  recount(): Promise<void>;

  /** Closes the connections that were opened. */
  close(): void;
}
