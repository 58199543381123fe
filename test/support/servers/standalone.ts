import type { Redis } from "ioredis";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { type Address, addressOf, type ConnectOptions } from "./connection.ts";
import { Connections } from "./connections.ts";
import type { Topology } from "./topology.ts";

export interface StandaloneOptions {
  /** A running server; left out: a private one is launched. */
  url?: string;
  /** More arguments for the private server. */
  args?: string[];
  /** Its name; default: "standalone". */
  name?: string;
}

/**
 * One server.
 *
 * @example
 * const standalone = await Standalone.launch();
 * const redis = standalone.connect({ keyPrefix: "app:" });
 * await redis.set("orders", "1");
 * const admin = await standalone.adminOf("app:orders"); // it has no prefix
 * await standalone.stop();
 */
export class Standalone implements Topology {
  readonly name: string;
  readonly address: Address;
  /** The private server; undefined if a url was given. */
  readonly server: LocalServer | undefined;
  readonly #connections = new Connections();

  constructor(given: { name: string; address: Address; server: LocalServer | undefined }) {
    this.name = given.name;
    this.address = given.address;
    this.server = given.server;
  }

  get servers(): { host: string; port: number }[] {
    const { host = "", port = 0 } = this.address.redis;
    return [{ host, port }];
  }

  static async launch({ url, args = [], name = "standalone" }: StandaloneOptions = {}): Promise<Standalone> {
    const server = url === undefined ? await launchServer({ args }) : undefined;
    const address = addressOf(url ?? server?.url ?? "");
    return new Standalone({ name, address, server });
  }

  connect(options?: ConnectOptions): Redis {
    return this.#connections.open(this.address, options) as Redis;
  }

  async admins(): Promise<Redis[]> {
    return [this.#admin()];
  }

  async adminOf(_key?: string): Promise<Redis> {
    return this.#admin();
  }

  async stop(): Promise<void> {
    this.#connections.close();
    await this.server?.stop();
  }

  #admin(): Redis {
    return this.#connections.admin({ port: this.address.redis.port ?? 0 }, this.address.redis);
  }
}
