import { type Client, listenTo } from "../redis/node-redis/client.ts";
import { Lifetime } from "../redis/node-redis/lifetime.ts";
import { NodeRedisConnection } from "./node-redis-connection.ts";
import type { TransactionConnection } from "./session.ts";
import type { Source } from "./source.ts";

/** A client of node-redis, what `createClient()` returns. */
export class NodeRedisSource implements Source {
  readonly #client: Client;
  readonly #lifetime: Lifetime;

  constructor(client: Client) {
    this.#client = client;
    this.#lifetime = new Lifetime(client);
  }

  get isOver(): boolean {
    return this.#lifetime.isOver;
  }

  onEnd(ended: () => void): void {
    listenTo(this.#client, { ready: () => this.#lifetime.wasOpened(), end: ended });
  }

  slotOf(): null {
    return null;
  }

  refresh(): void {}

  placeOf(): { name: string; connect: () => TransactionConnection } {
    return { name: "", connect: () => new NodeRedisConnection(this.#client) };
  }
}
