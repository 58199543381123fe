import { TransactionError } from "../api/errors.ts";
import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { orAbort } from "../util/abort.ts";
import { slotOf } from "../util/slots.ts";
import { type CommandLike, isElsewhere, isReply, type QueueLike, rootOf, type Session } from "./session.ts";

/** The connections of a Cluster to its nodes; of anything else its own kind. */
type ConnectionOf<R> = R extends { nodes(...args: never[]): (infer N)[] } ? N : R;
type QueueOf<C> = C extends { pipeline(...args: never[]): infer P } ? P : never;

/** What the body of `optimistic` reads and writes with. It ends with the body. */
export interface Transaction<R extends RedisLike | ClusterLike> {
  /**
   * To read with: the connection that watches the keys, which is the transaction's own. `watch`
   * adds keys that only reading can name. What is *written* with it is written at once, whatever
   * becomes of the transaction.
   */
  readonly redis: ConnectionOf<R>;
  /**
   * To write with: an ioredis pipeline. What is queued here is executed when the body has returned,
   * all or nothing.
   */
  readonly multi: QueueOf<ConnectionOf<R>>;
  /**
   * What the queued commands were answered, in their order. There after `optimistic` has resolved:
   * let the body return the transaction. Throws before.
   */
  readonly replies: readonly unknown[];
}

/**
 * Nothing was executed, and another try may do better. `cause`: how the connection failed; null:
 * others changed a key.
 */
export class TryAgain {
  constructor(readonly cause: Error | null) {}
}

/** One try: WATCH, the body, MULTI, what was queued, EXEC. */
export class Attempt<R extends RedisLike | ClusterLike> {
  readonly transaction: Transaction<R>;
  readonly #session: Session;
  readonly #keys: readonly string[];
  readonly #slot: number | null;
  readonly #queue: QueueLike;
  /** The body has returned, thrown or been given up: the connection is somebody else's from now on. */
  hasEnded = false;
  #misuse: TypeError | null = null;
  #replies: readonly unknown[] | null = null;

  constructor(session: Session, keys: readonly string[], slot: number | null) {
    const { connection } = session;
    const queue = connection.multi();
    // 1. The body finds that a key is missing; 2. its slot moves to another server; 3. somebody
    //    makes the key there;
    // 4. EXEC here: a key that never was here was not touched. A command with the keys has EXEC
    //    look at the slot.
    if (slot !== null) queue.exists(...keys);
    this.#session = session;
    this.#keys = keys;
    this.#slot = slot;
    this.#queue = queue;
    const attempt = this;
    const exec = (): never => {
      throw this.#misused("exec", "queued commands are executed when the body returns");
    };
    // The body has views of both, where its commands pass the guard. What is done here has the originals.
    this.transaction = {
      redis: view(connection, {
        sendCommand: (command: CommandLike, stream?: unknown) => this.#read(command, stream),
        connect: async () => Promise.reject(this.#misused("connect", CHANGES)),
      }),
      multi: view(queue, {
        exec,
        execBuffer: exec,
        sendCommand(command: CommandLike) {
          attempt.#guard(command, true);
          queue.sendCommand(command);
          return this;
        },
      }),
      get replies() {
        if (attempt.#replies) return attempt.#replies;
        throw new Error("A transaction has no replies before it was executed: return it from the body");
      },
    };
  }

  /**
   * @throws TryAgain; the body's error, the signal's reason, TransactionError: all of these end the
   *   transaction.
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
    // With the connection the WATCH is gone, and a body that failed may have read on a lost one:
    // whatever it says rests on that. Nothing stands between this look and the writing of EXEC.
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

  /** EXEC was sent and did not execute. */
  #refused(error: Error): never {
    const cause = rootOf(error);
    // It may have been executed: a second try could do it twice.
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

  #read(command: CommandLike, stream: unknown): unknown {
    const session = this.#session;
    try {
      this.#guard(command, false);
      command.promise.catch(session.judge).catch(() => {});
      return session.connection.sendCommand(command, stream);
    } catch (error) {
      // What stands before it in a pipeline counts as sent and is not: replies would go to the
      // wrong commands.
      if (!this.hasEnded && stream) session.fail(error as Error);
      command.reject(error as Error);
      return command.promise;
    }
  }

  /** @throws for a command that the body may not send, or queue. */
  #guard(command: CommandLike, isQueued: boolean): void {
    const { name } = command;
    if (this.hasEnded)
      throw new Error(
        `Cannot ${name} in a transaction that has ended: await everything that belongs to it in its body`,
      );
    if (REFUSED.has(name) || (isQueued && name === "watch")) throw this.#misused(name, CHANGES);
    // The server would send it elsewhere, as it does when a slot has moved: it would be tried again in vain.
    const slot = isQueued ? this.#slot : null;
    if (slot !== null && command.getKeys().some((key) => slotOf(String(key)) !== slot))
      throw this.#misused(name, "in Cluster its keys must have the hash slot of the watched ones");
  }

  #misused(command: string, why: string): TypeError {
    this.#misuse ??= new TypeError(`Cannot ${command} in the body of a transaction: ${why}`);
    return this.#misuse;
  }
}

const view = <V>(of: object, changes: object): V => Object.assign(Object.create(of), changes);

const CHANGES = "it would end the transaction, or change its connection for the next one";

/** Commands that would do so. */
const REFUSED = new Set(
  "multi exec discard unwatch select subscribe psubscribe ssubscribe monitor quit reset auth hello".split(
    " ",
  ),
);
