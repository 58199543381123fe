/** What carries messages asks of the lock manager. */
export interface Audience {
  /** Is this the client's own channel, where the number of receivers counts? */
  isOwn(channel: string): boolean;
  /** Is anybody waiting? */
  isWanted(): boolean;
}

/** What the lock manager needs of whatever carries messages: one connection, or one for each node of a Cluster. */
export interface Subscriptions {
  /** Called when messages may have been missed and are heard again. */
  onGap: () => void;

  /** Is every message of this channel heard from now on? */
  isReady(channel: string): boolean;

  /** Does the number of receivers of a message on this channel prove anything? Not behind some proxies and ACLs. */
  isCounted(channel: string): boolean;

  /** Hears a channel from the next `ready()` on. Returns how to stop. */
  listen(channel: string, listener: (message: string) => void): () => void;

  /** Resolves when the channel is acknowledged. Rejects when SUBSCRIBE is refused or takes longer than a command may. */
  ready(channel: string): Promise<void>;

  /** A message of this channel was missed: is anybody listening at the other end? A deaf connection is replaced. */
  selfTest(channel: string): Promise<void>;

  /** The connection for commands is back: believe the number of receivers again where it can be believed. */
  recount(): Promise<void>;

  /** Closes the connections that were opened. */
  close(): void;
}
