import pTimeout from "p-timeout";
import { REPLY_TIMEOUT } from "../defaults.ts";
import { Chain, copyOf } from "../redis/node-redis/chain.ts";
import { type Client, isReply, PLAIN, type Word } from "../redis/node-redis/client.ts";
import { duration } from "../util/duration.ts";
import { customTimers } from "../util/real-timers.ts";
import type { QueueLike, Reply, TransactionConnection } from "./session.ts";

/** A queue of node-redis, what `client.multi()` returns. */
interface Multi {
  exec(): Promise<readonly unknown[]>;
}

/** A client with the parts that only transactions use. */
type Origin = Client & { multi(): Multi };

/** Redis executed nothing, because a key has changed. */
const CONFLICT = Symbol("conflict");

/**
 * A client of our own for transactions, copied from the caller's. RACE: it connects once, because
 * after a reconnect EXEC would run without its WATCH.
 */
export class NodeRedisConnection implements TransactionConnection {
  readonly #chain: Chain;
  #client: Origin | null = null;
  #report: (error: unknown) => void = () => {};

  constructor(given: Client) {
    this.#chain = new Chain(
      () => copyOf(given),
      () => null,
    );
  }

  /** While it is connected. */
  get client(): Origin {
    if (!this.#client || this.#chain.client !== this.#client) throw new Error("The client is closed");
    return this.#client;
  }

  get status(): string {
    return this.#chain.client && this.#chain.client === this.#client ? "ready" : "end";
  }

  get stream(): { readonly writable: boolean } {
    return { writable: this.status === "ready" };
  }

  on(_event: "error", listener: (error: unknown) => void): void {
    this.#report = listener;
  }

  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#chain.open({
        ready: () => {
          this.#client = this.#chain.client as Origin;
          resolve();
        },
        lost: (error) => {
          isReply(error);
          this.#report(error);
          reject(error);
        },
        ended: () => {},
      });
    });
  }

  disconnect(): void {
    this.#chain.close();
  }

  watch(...keys: string[]): Promise<unknown> {
    return this.#send(["WATCH", ...keys.map((key) => (this.#client?._keyPrefix ?? "") + key)]);
  }

  unwatch(): Promise<unknown> {
    return this.#send(["UNWATCH"]);
  }

  multi(): QueueLike & { readonly multi: object } {
    const { client } = this;
    // node-redis rejects with the first error of all replies: it would not say whether MULTI itself
    // was refused, so that Redis has executed the others, or one of these, so that it has not.
    const executor = Object.create(client, {
      _executeMulti: { value: (commands: readonly { args: Word[] }[]) => this.#execute(commands) },
    }) as Origin;
    const multi = client.multi.call(executor);
    return { multi, exec: () => repliesOf(multi) };
  }

  async #execute(commands: readonly { readonly args: Word[] }[]): Promise<unknown[]> {
    // All are written together: no other command comes between them.
    const sent = [["MULTI"], ...commands.map(({ args }) => args), ["EXEC"]].map((words) => this.#send(words));
    const replies = await Promise.allSettled(sent);
    const errors = replies.flatMap((reply) => (reply.status === "rejected" ? [reply.reason] : []));
    const last = replies.at(-1);
    if (last?.status !== "fulfilled")
      throw Object.assign(errors.at(-1), { previousErrors: errors.slice(0, -1) });
    if (last.value === null) throw CONFLICT;
    return last.value as unknown[];
  }

  async #send(words: readonly Word[]): Promise<unknown> {
    try {
      return await timely(this.client.sendCommand(words, { ...PLAIN, typeMapping: undefined }));
    } catch (error) {
      isReply(error);
      throw error;
    }
  }
}

/** node-redis waits without limit for the reply to a command that it has written. */
export const timely = <T>(reply: Promise<T>): Promise<T> =>
  pTimeout(reply, {
    milliseconds: REPLY_TIMEOUT,
    message: `Redis did not answer within ${duration(REPLY_TIMEOUT)}`,
    customTimers,
  });

/** Executes it. node-redis throws if a command has failed, with all replies. */
async function repliesOf(multi: Multi): Promise<Reply[] | null> {
  try {
    return (await multi.exec()).map((reply) => [null, reply]);
  } catch (error) {
    if (error === CONFLICT) return null;
    const { replies } = error as { replies?: readonly unknown[] };
    if (!Array.isArray(replies)) throw error;
    return replies.map((reply) => (isReply(reply) ? [reply] : [null, reply]));
  }
}
