import type { Keys } from "./keys.ts";

/**
 * What the lock manager needs of its transport: one connection, or those to the nodes of a quorum.
 */
export interface Transport {
  /** How long a command may stay unanswered, in ms. */
  readonly replyTimeout: number;
  readonly keys: Keys;
  /**
   * Grows whenever a connection is lost. If it is the same before and after a command, the command
   * was sent once.
   */
  readonly epoch: number;
  /**
   * When commands were last written that the application had held back by blocking the event loop
   * right after a call, on the monotonic clock. Redis's answer time counts from then on. -Infinity:
   * never.
   */
  readonly heldUntil: number;
  /** The scripts under way, by their arguments. */
  readonly unanswered: Iterable<{ readonly argv: readonly unknown[] }>;
  /** It was there and is lost, and may come back: further commands would only pile up. */
  readonly isAway: boolean;
  /** It is closed for good. */
  readonly ended: boolean;
  /**
   * May a command sent at that time, on the monotonic clock, have reached Redis? Not if there was
   * no connection.
   */
  mayHaveReached(since: number): boolean;
  /**
   * Why Redis does not answer, as far as known: its address, the connection's state and last error.
   */
  trouble(): Error;
  /**
   * Writes the commands that were sent in this turn of the event loop and held back to leave
   * together.
   */
  flush(): void;
  /** Called when the connection is lost. */
  onLost: () => void;
  /** Called when the connection is back after a loss. */
  onReconnect: () => void;
  /** Called when the connection is closed for good. */
  onEnd: () => void;
  /** Removes the listeners. Commands under way are still answered. */
  detach(): void;
}

/** Is notified of a client's connections. */
export interface ConnectionListener {
  /** The connection for commands is there again. */
  reconnected(): void;
  /** The connection for commands is closed for good. */
  disconnected(): void;
  /** Messages may have been missed, and are received again. */
  missed(): void;
}

/** What the message transport asks of the lock manager. */
export interface Audience {
  /** Is this the client's own channel, whose number of receivers counts? */
  isOwn(channel: string): boolean;
  /** Does any caller wait? */
  isWanted(): boolean;
  readonly deaf: DeafListener;
}

/** Is notified when a connection receives no messages for seconds, although commands are answered. */
export interface DeafListener {
  /** Would it report this reason now? Not more often than once a minute. */
  isDue(reason: string): boolean;
  /** `place`: where the connection leads. */
  tell(place: string, reason: string, cause: unknown): void;
}

/**
 * What the lock manager needs of the connection that carries messages, or of several: a Cluster has
 * one per node.
 */
export interface Subscriptions {
  /** Called when messages may have been missed and are received again. */
  onGap: () => void;

  /** Is every message of this channel received from now on? */
  isReady(channel: string): boolean;

  /**
   * Does the number of receivers of a message on this channel prove anything? Not with some proxies
   * and ACLs.
   */
  isCounted(channel: string): boolean;

  /**
   * Receives a channel's messages from the next `ready()` on. Returns a function that stops this.
   */
  listen(channel: string, listener: (message: string) => void): () => void;

  /**
   * Resolves when the channel is acknowledged. Rejects when SUBSCRIBE is refused or takes longer
   * than a command may.
   */
  ready(channel: string): Promise<void>;

  /**
   * A message of this channel was missed: checks whether this client still receives messages. A
   * deaf connection is replaced.
   */
  selfTest(channel: string): Promise<void>;

  /** Which connections receive no messages now, and why: in sentences without an end. */
  deafness(): readonly string[];

  /** The connection for commands is back: trust the number of receivers again where possible. */
  recount(): Promise<void>;

  /** Closes the connections that this object opened. */
  close(): void;
}
