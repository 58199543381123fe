import pTimeout from "p-timeout";
import type { SubscriberLike } from "../api/redis.ts";
import { CONNECTION_IDLE } from "../defaults.ts";
import { unref } from "../redis/ioredis/connection.ts";
import { orAbort } from "../util/abort.ts";
import { detached } from "../util/detached.ts";
import { duration } from "../util/duration.ts";
import { clearTimeout, customTimers, setTimeout } from "../util/real-timers.ts";

/** A command as ioredis hands it to `sendCommand`. */
export interface CommandLike {
  readonly name: string;
  readonly promise: Promise<unknown>;
  reject(error: Error): void;
  /** With the connection's `keyPrefix`. */
  getKeys(): readonly (string | Buffer)[];
}

/** What ioredis answers for each command of a transaction. */
export type Reply = readonly [error: Error | null, value?: unknown];

/** MULTI as ioredis makes it: commands are kept here, and go out together with EXEC. */
export interface QueueLike {
  exists(...keys: string[]): unknown;
  exec(): Promise<Reply[] | null>;
  execBuffer(): Promise<Reply[] | null>;
  sendCommand(command: CommandLike): unknown;
}

/** What a transaction needs of the ioredis connection that it has for itself. */
export interface ConnectionLike extends SubscriberLike {
  readonly stream?: { readonly writable: boolean };
  connect(): Promise<void>;
  watch(...keys: string[]): Promise<unknown>;
  unwatch(): Promise<unknown>;
  multi(): QueueLike;
  sendCommand(command: CommandLike, stream?: unknown): unknown;
}

/**
 * What transactions change about the caller's connection. `retryStrategy: null` is the one that counts:
 *
 * 1. WATCH is answered; 2. the connection breaks; 3. somebody else changes the key; 4. the
 *    connection is back, and knows
 * of no WATCH; 5. EXEC goes out, and is executed unguarded.
 *
 * A connection that has closed never comes back, so there is no 4. Nor is anything kept for later
 * or sent again.
 */
export const OVERRIDES = {
  retryStrategy: null,
  reconnectOnError: null,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  autoResubscribe: false,
  lazyConnect: true,
  readOnly: false,
  monitor: false,
};

/** One connection of transactions, from its first byte to its last: it ends with the first trouble. */
export class Session {
  #isWatching = false;
  #trouble: Error | null = null;
  #idle: NodeJS.Timeout | undefined;

  private constructor(readonly connection: ConnectionLike) {
    connection.on("error", (error) => {
      this.#trouble ??= error as unknown as Error;
    });
  }

  /**
   * Connects. Rejects with what went wrong, after `timeout` ms at the latest, or with the signal's
   * reason.
   */
  static async open(
    connection: ConnectionLike,
    timeout: number,
    signal: AbortSignal | undefined,
  ): Promise<Session> {
    const session = new Session(connection);
    try {
      const connected = detached(() => connection.connect());
      await pTimeout(orAbort(signal, connected), {
        milliseconds: timeout,
        message: `no connection to Redis within ${duration(timeout)}`,
        customTimers,
      });
      // A user without the right to MULTI would have what stands between it and EXEC executed one
      // by one, unguarded.
      await connection.multi().exec();
      unref(connection); // commands that are under way keep the process alive, by their timeouts
      return session;
    } catch (error) {
      connection.disconnect();
      if (signal?.aborted) throw error;
      throw session.#trouble ?? rootOf(error as Error);
    }
  }

  /** It had trouble and is closed, or closing. What was watched is not watched any more. */
  get isLost(): boolean {
    return this.#trouble !== null || this.connection.status !== "ready" || !this.connection.stream?.writable;
  }

  /** The first thing that went wrong. */
  get trouble(): Error {
    return this.#trouble ?? new Error("the connection to Redis was lost");
  }

  async watch(keys: readonly string[]): Promise<void> {
    this.#isWatching = true;
    await this.connection.watch(...keys).catch(this.judge);
  }

  /** EXEC. It ends every WATCH, whatever is answered. */
  async execute(queue: QueueLike): Promise<Reply[] | null> {
    const replies = await queue.exec().catch(this.judge);
    this.#isWatching = false;
    return replies;
  }

  /** Makes it fit for the next transaction, whose WATCH goes out behind this. */
  clean(): void {
    if (this.#isWatching && !this.isLost)
      this.connection.unwatch().catch((error) => this.fail(error as Error));
    this.#isWatching = false;
  }

  fail(error: Error): void {
    this.#trouble ??= error;
    this.connection.disconnect();
  }

  /** Nobody uses it for now: it closes after a while. */
  rest(): this {
    this.#idle = detached(() => setTimeout(() => this.connection.disconnect(), CONNECTION_IDLE).unref());
    return this;
  }

  /** May it be used again? */
  wake(): boolean {
    clearTimeout(this.#idle);
    return !this.isLost;
  }

  /** Is a failed command the connection's fault? Then that is over, or a dead one would be used again. */
  readonly judge = (error: Error): never => {
    if (!isReply(error) || isElsewhere(error)) this.fail(error);
    throw error;
  };
}

/** Of a transaction whose commands were refused before EXEC, the first refusal. */
export const rootOf = (error: Error & { readonly previousErrors?: readonly Error[] }): Error =>
  error.previousErrors?.[0] ?? error;

/** Redis said it; anything else comes from the connection. */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/** The server is not, or not now, the one that has the keys. */
export const isElsewhere = (error: Error): boolean => ELSEWHERE.test(error.message);

const ELSEWHERE =
  /^(EXECABORT Transaction discarded because of: )?(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY) /;
