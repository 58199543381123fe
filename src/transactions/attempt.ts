import { TransactionError } from "../errors.ts";
import { slotOf } from "../redis/slots.ts";
import type { ClusterLike, RedisLike } from "../redis/types.ts";
import { orAbort } from "../util/abort.ts";
import {
  type CommandLike,
  isElsewhere,
  isReply,
  type QueueLike,
  type Reply,
  rootOf,
  type Session,
} from "./session.ts";

/** The connections of a Cluster to its nodes; of anything else its own kind. */
type ConnectionOf<R> = R extends { nodes(...args: never[]): (infer N)[] } ? N : R;
type QueueOf<C> = C extends { pipeline(...args: never[]): infer P } ? P : never;

/** What the body of `optimistic` reads and writes with. It ends with the body. */
export interface Transaction<R extends RedisLike | ClusterLike> {
  /**
   * To read with: the connection that watches the keys, which is the transaction's own. `watch` adds keys that only
   * reading can name. What is *written* with it is written at once, whatever becomes of the transaction.
   */
  readonly redis: ConnectionOf<R>;
  /** To write with: an ioredis pipeline. What is queued here is executed when the body has returned, all or nothing. */
  readonly multi: QueueOf<ConnectionOf<R>>;
  /**
   * What the queued commands were answered, in their order. There after `optimistic` has resolved: let the body return
   * the transaction. Throws before.
   */
  readonly replies: readonly unknown[];
}

/** How one try ended, when it was neither the body's error nor the caller's abort. */
export type Outcome<T> =
  | { readonly is: "done"; readonly result: T }
  /** Somebody else changed a key: EXEC did nothing. */
  | { readonly is: "conflict" }
  /** The connection was lost, or was to the wrong server, before anything was executed. */
  | { readonly is: "lost"; readonly cause: Error };

/** One try: WATCH, the body, MULTI, what was queued, EXEC. */
export class Attempt<R extends RedisLike | ClusterLike> {
  readonly transaction: Transaction<R>;
  readonly #session: Session;
  readonly #keys: readonly string[];
  readonly #slot: number | null;
  readonly #queue: QueueLike;
  readonly #exec: QueueLike["exec"];
  #hasEnded = false;
  #misuse: TypeError | null = null;
  #replies: readonly unknown[] | null = null;

  constructor(session: Session, keys: readonly string[], slot: number | null) {
    this.#session = session;
    this.#keys = keys;
    this.#slot = slot;
    this.#queue = session.connection.multi();
    this.#exec = this.#queue.exec;
    if (slot !== null) {
      // 1. The body finds that a key is missing; 2. its slot moves to another server; 3. somebody makes the key there;
      // 4. EXEC here: a key that never was here was not touched. A command with the keys has EXEC look at the slot.
      this.#queue.exists(...keys);
    }
    this.#queue.sendCommand = (command) => this.#guardQueue(command);
    this.#queue.exec = this.#queue.execBuffer = () => {
      throw this.#misused("exec", "queued commands are executed when the body returns");
    };
    const redis = Object.create(session.connection, {
      sendCommand: { value: (command: CommandLike, stream?: unknown) => this.#read(command, stream) },
      connect: { value: async () => Promise.reject(this.#misused("connect", CHANGES)) },
    });
    const replies = (): readonly unknown[] => this.#told();
    this.transaction = {
      redis,
      multi: this.#queue as never,
      get replies() {
        return replies();
      },
    };
  }

  /** The body has returned, thrown or been given up: the connection is somebody else's from now on. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @throws the body's error, the signal's reason, TransactionError when the try must not be repeated. */
  async run<T>(body: () => T | PromiseLike<T>, signal: AbortSignal | undefined): Promise<Outcome<T>> {
    const session = this.#session;
    try {
      await orAbort(signal, session.watch(this.#keys));
    } catch (error) {
      signal?.throwIfAborted();
      if (session.isLost) return { is: "lost", cause: session.trouble };
      throw new TransactionError(this.#keys, "nothing", "was not executed", error);
    }
    signal?.throwIfAborted(); // the body must not begin any more
    let result: T;
    try {
      result = await orAbort(signal, Promise.resolve().then(body));
    } catch (error) {
      this.#hasEnded = true;
      if (this.#misuse) throw this.#misuse;
      signal?.throwIfAborted();
      // It read on a connection that was lost: whatever it says rests on that.
      if (session.isLost) return { is: "lost", cause: session.trouble };
      throw error;
    }
    this.#hasEnded = true;
    if (this.#misuse) throw this.#misuse;
    signal?.throwIfAborted();
    return this.#execute(result);
  }

  async #execute<T>(result: T): Promise<Outcome<T>> {
    const session = this.#session;
    // With the connection the WATCH is gone. Nothing stands between this look and the writing of EXEC.
    if (session.isLost) return { is: "lost", cause: session.trouble };
    const queue = this.#queue;
    queue.sendCommand = Object.getPrototypeOf(queue).sendCommand;
    queue.exec = this.#exec;
    const executing = session.execute(queue);
    queue.sendCommand = (command) => this.#guardQueue(command);
    let replies: Reply[] | null;
    try {
      replies = await executing;
    } catch (error) {
      return this.#refused(error as Error);
    }
    if (replies === null) return { is: "conflict" };
    const own = this.#slot !== null ? replies.slice(1) : replies;
    const failed = own.filter(([error]) => error !== null);
    const told = own.map(([error, reply]) => error ?? reply);
    if (failed.length > 0) {
      const executed = failed.length < own.length ? "partly" : "nothing";
      const what = `was executed, but ${failed.length} of its ${own.length} commands failed`;
      throw new TransactionError(this.#keys, executed, what, failed[0]?.[0], told);
    }
    this.#replies = told;
    return { is: "done", result };
  }

  /** EXEC was sent and did not execute. */
  #refused(error: Error): Outcome<never> {
    const cause = rootOf(error);
    if (isReply(error) && !error.message.startsWith("ERR EXEC without MULTI")) {
      // Redis has discarded the transaction: nothing was executed.
      if (isElsewhere(error) || isElsewhere(cause)) {
        this.#session.fail(cause);
        return { is: "lost", cause };
      }
      throw new TransactionError(this.#keys, "nothing", "was refused by Redis", cause);
    }
    // It may have been executed: a second try could do it twice.
    throw new TransactionError(
      this.#keys,
      "unknown",
      "has an unknown outcome: EXEC was sent and not answered. Look in Redis whether it was executed before you try again",
      cause,
    );
  }

  #read(command: CommandLike, stream: unknown): unknown {
    const session = this.#session;
    const { name } = command;
    if (!this.#hasEnded && !REFUSED.has(name)) {
      command.promise.catch(session.judge).catch(() => {});
      return session.connection.sendCommand(command, stream);
    }
    const error = this.#hasEnded ? this.#late(name) : this.#misused(name, CHANGES);
    // What stands before it in a pipeline counts as sent and is not: replies would go to the wrong commands.
    if (!this.#hasEnded && stream) session.fail(error);
    command.reject(error);
    return command.promise;
  }

  #guardQueue(command: CommandLike): unknown {
    const { name } = command;
    if (this.#hasEnded) throw this.#late(name);
    if (REFUSED.has(name) || name === "watch") throw this.#misused(name, CHANGES);
    // The server would send it elsewhere, as it does when a slot has moved: it would be tried again in vain.
    if (this.#slot !== null && command.getKeys().some((key) => slotOf(String(key)) !== this.#slot))
      throw this.#misused(name, "in Cluster its keys must have the hash slot of the watched ones");
    return Object.getPrototypeOf(this.#queue).sendCommand.call(this.#queue, command);
  }

  #told(): readonly unknown[] {
    if (this.#replies) return this.#replies;
    throw new Error("A transaction has no replies before it was executed: return it from the body");
  }

  #misused(command: string, why: string): TypeError {
    this.#misuse ??= new TypeError(`Cannot ${command} in the body of a transaction: ${why}`);
    return this.#misuse;
  }

  #late(command: string): Error {
    return new Error(
      `Cannot ${command} in a transaction that has ended: await everything that belongs to it in its body`,
    );
  }
}

const CHANGES = "it would end the transaction, or change its connection for the next one";

/** ScriptRunner that would end the transaction, or leave the connection in another state for the next one. */
const REFUSED = new Set(
  "multi exec discard unwatch select subscribe psubscribe ssubscribe monitor quit reset auth hello".split(
    " ",
  ),
);
