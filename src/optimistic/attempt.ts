import { TransactionError } from "../api/errors.ts";
import type { ClusterLike, NodeRedisLike, RedisLike } from "../api/redis.ts";
import { orAbort } from "../util/abort.ts";
import { slotOf } from "../util/slots.ts";
import { NodeRedisConnection } from "./node-redis-connection.ts";
import { readingView, writingView } from "./node-redis-views.ts";
import {
  type CommandLike,
  type IoredisConnection,
  isElsewhere,
  isReply,
  type QueueLike,
  rootOf,
  type Session,
} from "./session.ts";

/** A Cluster's connections to its nodes; for any other connection, its own type. */
type ConnectionOf<R> = R extends { nodes(...args: never[]): (infer N)[] } ? N : R;
type QueueOf<C> = C extends { pipeline(...args: never[]): infer P }
  ? P
  : C extends { multi(...args: never[]): infer M }
    ? M
    : never;

/** What the body of `optimistic` reads and writes with. Unusable after the body. */
export interface Transaction<R extends RedisLike | ClusterLike | NodeRedisLike> {
  /**
   * For reading: the transaction's own connection, which watches the keys. `watch` adds keys that
   * only reading can name. What is *written* with it is written at once, whether or not the
   * transaction succeeds.
   */
  readonly redis: ConnectionOf<R>;
  /**
   * For writing: a pipeline of ioredis, or what `multi()` of node-redis returns. Commands queued here
   * run when the body has returned, all or none.
   */
  readonly multi: QueueOf<ConnectionOf<R>>;
  /**
   * The answers to the queued commands, in their order. Available after `optimistic` has resolved:
   * let the body return the transaction. Throws before.
   */
  readonly replies: readonly unknown[];
}

/**
 * Nothing was executed, and another try may succeed. `cause`: how the connection failed; null:
 * another client changed a key.
 */
export class TryAgain {
  constructor(readonly cause: Error | null) {}
}

/** One try: WATCH, the body, MULTI, the queued commands, EXEC. */
export class Attempt<R extends RedisLike | ClusterLike | NodeRedisLike> {
  readonly transaction: Transaction<R>;
  readonly #session: Session;
  readonly #keys: readonly string[];
  readonly #slot: number | null;
  readonly #queue: QueueLike;
  /**
   * The body has returned, thrown or been given up: from now on the connection is for other
   * transactions.
   */
  hasEnded = false;
  #misuse: TypeError | null = null;
  #replies: readonly unknown[] | null = null;

  constructor(session: Session, keys: readonly string[], slot: number | null) {
    this.#session = session;
    this.#keys = keys;
    this.#slot = slot;
    const { queue, redis, multi } =
      session.connection instanceof NodeRedisConnection
        ? this.#onNodeRedis(session.connection)
        : this.#onIoredis(session.connection as IoredisConnection);
    this.#queue = queue;
    const attempt = this;
    this.transaction = {
      redis: redis as ConnectionOf<R>,
      multi: multi as QueueOf<ConnectionOf<R>>,
      get replies() {
        if (attempt.#replies) return attempt.#replies;
        throw new Error("A transaction has no replies before it was executed: return it from the body");
      },
    };
  }

  /** The body gets views of both, whose commands pass the guard. The code here uses the originals. */
  #onIoredis(connection: IoredisConnection) {
    const queue = connection.multi();
    // 1. The body finds that a key is missing; 2. its slot moves to another server; 3. another
    // client makes the key there; 4. EXEC runs here, where the key never was and so was not
    // touched. A command with the keys makes EXEC check the slot.
    if (this.#slot !== null) queue.exists(...this.#keys);
    const guard = (command: CommandLike): void => this.#guard(command.name, true, command);
    const redis = view(connection, {
      sendCommand: (command: CommandLike, stream?: unknown) => this.#read(connection, command, stream),
      connect: async () => Promise.reject(this.#misused("connect", CHANGES)),
    });
    const multi = view(queue, {
      exec: this.#exec,
      execBuffer: this.#exec,
      sendCommand(command: CommandLike) {
        guard(command);
        queue.sendCommand(command);
        return this;
      },
    });
    return { queue, redis, multi };
  }

  #onNodeRedis(connection: NodeRedisConnection) {
    const queue = connection.multi();
    const guards = {
      guard: (command: string, isQueued: boolean) => this.#guard(command, isQueued),
      judge: this.#session.judge,
      exec: this.#exec,
    };
    return { queue, redis: readingView(connection.client, guards), multi: writingView(queue.multi, guards) };
  }

  readonly #exec = (): never => {
    throw this.#misused("exec", "queued commands are executed when the body returns");
  };

  /**
   * @throws TryAgain; the body's error, the signal's reason, or TransactionError: these end the
   * transaction.
   */
  async run<T>(body: () => T | PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
    const session = this.#session;
    let hasBegun = false;
    let outcome: { readonly value: T } | { readonly error: unknown };
    try {
      await orAbort(signal, session.watch(this.#keys));
      signal?.throwIfAborted(); // the body must not begin any more
      hasBegun = true;
      outcome = { value: await orAbort(signal, Promise.resolve().then(body)) };
    } catch (error) {
      outcome = { error };
    }
    this.hasEnded = true;
    if (this.#misuse) throw this.#misuse;
    signal?.throwIfAborted();
    // The WATCH is gone with the connection, and a body that failed may have read on a lost one, so
    // its outcome does not count. Nothing comes between this check and the writing of EXEC.
    if (session.isLost) throw new TryAgain(session.trouble);
    if ("error" in outcome)
      throw hasBegun
        ? outcome.error
        : new TransactionError(this.#keys, "nothing", "was not executed", outcome.error);
    const replies = await session.execute(this.#queue).catch((error: Error) => this.#refused(error));
    if (replies === null) throw new TryAgain(null);
    const own = this.#slot !== null ? replies.slice(1) : replies;
    const failed = own.filter(([error]) => error !== null);
    const told = own.map(([error, reply]) => error ?? reply);
    if (failed.length > 0) {
      const executed = failed.length < own.length ? "partly" : "nothing";
      const what = `was executed, but ${failed.length} of its ${own.length} commands failed`;
      throw new TransactionError(this.#keys, executed, what, failed[0]?.[0], told);
    }
    this.#replies = told;
    return outcome.value;
  }

  /** EXEC was sent, and failed. */
  #refused(error: Error): never {
    const cause = rootOf(error);
    // It may have run: a second try could do it twice.
    if (!isReply(error) || error.message.startsWith("ERR EXEC without MULTI"))
      throw new TransactionError(
        this.#keys,
        "unknown",
        "may have been executed, because EXEC was sent and not answered; check in Redis before you try again",
        cause,
      );
    // Redis has discarded the transaction: nothing was executed.
    if (!isElsewhere(error) && !isElsewhere(cause))
      throw new TransactionError(this.#keys, "nothing", "was refused by Redis", cause);
    this.#session.fail(cause);
    throw new TryAgain(cause);
  }

  #read(connection: IoredisConnection, command: CommandLike, stream: unknown): unknown {
    const session = this.#session;
    try {
      this.#guard(command.name, false);
      command.promise.catch(session.judge).catch(() => {});
      return connection.sendCommand(command, stream);
    } catch (error) {
      // Earlier commands of a pipeline count as sent, but are not: replies would go to the wrong
      // commands.
      if (!this.hasEnded && stream) session.fail(error as Error);
      command.reject(error as Error);
      return command.promise;
    }
  }

  /** @throws for a command that the body may not send, or queue. */
  #guard(name: string, isQueued: boolean, command?: CommandLike): void {
    if (this.hasEnded)
      throw new Error(
        `Cannot ${name} in a transaction that has ended: await everything that belongs to it in its body`,
      );
    if (REFUSED.has(name) || (isQueued && name === "watch")) throw this.#misused(name, CHANGES);
    // The server would redirect it, as it does when a slot has moved, and every try would fail.
    const slot = isQueued ? this.#slot : null;
    if (slot !== null && command?.getKeys().some((key) => slotOf(String(key)) !== slot))
      throw this.#misused(name, "in Cluster its keys must have the hash slot of the watched ones");
  }

  #misused(command: string, why: string): TypeError {
    this.#misuse ??= new TypeError(`Cannot ${command} in the body of a transaction: ${why}`);
    return this.#misuse;
  }
}

const view = <V>(of: object, changes: object): V => Object.assign(Object.create(of), changes);

const CHANGES = "it would end the transaction, or change its connection for the next one";

/** Commands that would do that. */
const REFUSED = new Set(
  (
    "multi exec discard unwatch select subscribe psubscribe ssubscribe monitor quit reset auth hello " +
    "connect close destroy disconnect"
  ).split(" "),
);
