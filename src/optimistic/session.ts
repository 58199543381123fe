import pTimeout from "p-timeout";
import type { SubscriberLike } from "../api/redis.ts";
import { CONNECTION_IDLE } from "../defaults.ts";
import { orAbort } from "../util/abort.ts";
import { clientTimer } from "../util/client-timer.ts";
import { detached } from "../util/detached.ts";
import { duration } from "../util/duration.ts";
import { clearTimeout, customTimers } from "../util/real-timers.ts";

/** A command as ioredis hands it to `sendCommand`. */
export interface CommandLike {
  readonly name: string;
  readonly promise: Promise<unknown>;
  reject(error: Error): void;
  /** With the connection's `keyPrefix`. */
  getKeys(): readonly (string | Buffer)[];
}

/** ioredis's answer to each command of a transaction. */
export type Reply = readonly [error: Error | null, value?: unknown];

/** Commands stay here, and are sent together with MULTI and EXEC. */
export interface QueueLike {
  exec(): Promise<Reply[] | null>;
}

/** What a transaction needs of its own connection, of any library. */
export interface TransactionConnection {
  readonly status: string;
  readonly stream?: { readonly writable: boolean; unref?(): void };
  on(event: "error", listener: (error: unknown) => void): unknown;
  connect(): Promise<void>;
  disconnect(): void;
  watch(...keys: string[]): Promise<unknown>;
  unwatch(): Promise<unknown>;
  multi(): QueueLike;
}

/** MULTI as ioredis implements it. */
interface IoredisQueue extends QueueLike {
  exists(...keys: string[]): unknown;
  execBuffer(): Promise<Reply[] | null>;
  sendCommand(command: CommandLike): unknown;
}

/** An ioredis connection of our own. */
export interface IoredisConnection extends SubscriberLike {
  readonly stream?: { readonly writable: boolean };
  connect(): Promise<void>;
  watch(...keys: string[]): Promise<unknown>;
  unwatch(): Promise<unknown>;
  multi(): IoredisQueue;
  sendCommand(command: CommandLike, stream?: unknown): unknown;
}

/**
 * What connections for transactions change in the caller's options. `retryStrategy: null` is the
 * important one. Without it:
 *
 * 1. WATCH is answered; 2. the connection breaks; 3. another client changes the key; 4. the
 *   connection is back, without its WATCH; 5. EXEC is sent, and runs unguarded.
 *
 * A connection that has closed never comes back, so there is no 4. Nor is anything queued for later
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

/** One connection for transactions, from its first byte to its last: the first trouble ends it. */
export class Session {
  #isWatching = false;
  #trouble: Error | null = null;
  #idle: NodeJS.Timeout | undefined;

  private constructor(readonly connection: TransactionConnection) {
    connection.on("error", (error) => {
      this.#trouble ??= error as unknown as Error;
    });
  }

  /**
   * Connects. Rejects with what went wrong, after at most `timeout` ms, or with the signal's
   * reason.
   */
  static async open(
    connection: TransactionConnection,
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
      // For a user without the right to MULTI, Redis would run the queued commands one by one,
      // unguarded.
      await connection.multi().exec();
      connection.stream?.unref?.(); // commands that are under way keep the process alive, by their timeouts
      return session;
    } catch (error) {
      connection.disconnect();
      if (signal?.aborted) throw error;
      throw session.#trouble ?? rootOf(error as Error);
    }
  }

  /** It had trouble and is closed, or closing. Its keys are not watched any more. */
  get isLost(): boolean {
    return this.#trouble !== null || this.connection.status !== "ready" || !this.connection.stream?.writable;
  }

  /** The first error. */
  get trouble(): Error {
    return this.#trouble ?? new Error("the connection to Redis was lost");
  }

  async watch(keys: readonly string[]): Promise<void> {
    this.#isWatching = true;
    await this.connection.watch(...keys).catch(this.judge);
  }

  /** Sends EXEC, which ends every WATCH, whatever the answer. */
  async execute(queue: QueueLike): Promise<Reply[] | null> {
    const replies = await queue.exec().catch(this.judge);
    this.#isWatching = false;
    return replies;
  }

  /** Prepares it for the next transaction, whose WATCH is sent after this. */
  clean(): void {
    if (this.#isWatching && !this.isLost)
      this.connection.unwatch().catch((error) => this.fail(error as Error));
    this.#isWatching = false;
  }

  fail(error: Error): void {
    this.#trouble ??= error;
    this.connection.disconnect();
  }

  /** It is unused for now, and closes after a while. */
  rest(): this {
    this.#idle = clientTimer(() => this.connection.disconnect(), CONNECTION_IDLE);
    return this;
  }

  /** May it be used again? */
  wake(): boolean {
    clearTimeout(this.#idle);
    return !this.isLost;
  }

  /**
   * Was a failed command the connection's fault? Then the connection ends, so that a dead one is
   * not used again.
   */
  readonly judge = (error: Error): never => {
    if (!isReply(error) || isElsewhere(error)) this.fail(error);
    throw error;
  };
}

/** The first refusal, for a transaction whose commands were refused before EXEC. */
export const rootOf = (error: Error & { readonly previousErrors?: readonly Error[] }): Error =>
  error.previousErrors?.[0] ?? error;

/** An answer of Redis; any other error comes from the connection. */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/** The server does not have the keys, or not now. */
export const isElsewhere = (error: Error): boolean => ELSEWHERE.test(error.message);

const ELSEWHERE =
  /^(EXECABORT Transaction discarded because of: )?(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY) /;
