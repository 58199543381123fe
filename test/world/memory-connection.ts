import { EventEmitter } from "node:events";
import type { RedisArgument } from "../../src/api/redis.ts";
import { MemoryLink } from "../../src/tools/testing/memory-link.ts";
import type { ProcessNetwork } from "./network.ts";

/** A connection to a Redis in memory, with the methods of ioredis that contracts call. */
export class MemoryConnection extends EventEmitter {
  readonly isCluster = false;
  readonly options = { keyPrefix: "" };
  readonly link: MemoryLink;
  readonly #network: ProcessNetwork;

  constructor(network: ProcessNetwork) {
    super();
    this.#network = network;
    this.link = new MemoryLink(network);
  }

  get status(): string {
    return this.link.state === "ended" ? "end" : this.link.status;
  }

  /** Answered after all that was sent on this connection before. */
  async ping(): Promise<"PONG"> {
    await this.#send("TIME");
    return "PONG";
  }

  exists(...keys: string[]): Promise<unknown> {
    return this.#send("EXISTS", ...keys);
  }

  del(key: string): Promise<unknown> {
    return this.#send("DEL", key);
  }

  get(key: string): Promise<unknown> {
    return this.#send("GET", key);
  }

  set(key: string, value: RedisArgument): Promise<unknown> {
    return this.#send("SET", key, value);
  }

  pttl(key: string): Promise<unknown> {
    return this.#send("PTTL", key);
  }

  hkeys(key: string): Promise<unknown> {
    return this.#send("HKEYS", key);
  }

  zcard(key: string): Promise<unknown> {
    return this.#send("ZCARD", key);
  }

  pubsub(...words: string[]): Promise<unknown> {
    return this.#send("PUBSUB", ...words);
  }

  async flushall(): Promise<void> {
    await this.ping();
    this.#network.redis.keys.clear();
    await this.ping();
  }

  disconnect(): void {
    this.link.close();
  }

  async #send(...words: RedisArgument[]): Promise<unknown> {
    return textOf(await this.link.command(words));
  }
}

function textOf(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(textOf);
  return Buffer.isBuffer(reply) ? reply.toString() : reply;
}
