import type { Redis } from "ioredis";
import { createLockClient, type QuorumClient, type QuorumClientOptions } from "../../../src/index.ts";
import type { LocalServer } from "../../../tools/redis.ts";
import type { Address, ConnectOptions } from "./connection.ts";
import { Connections } from "./connections.ts";
import { launchAll } from "./launch-all.ts";
import type { Topology } from "./topology.ts";

/**
 * Masters that know nothing of each other, for a quorum. A connection to all of them goes by the first one's name.
 *
 * @example
 * const masters = await Masters.launch();
 * const redis = masters.connect();
 * const locks = masters.client(redis); // on three connections
 * await masters.servers[1]?.kill();
 * await masters.stop();
 */
export class Masters implements Topology {
  readonly name = "three masters";
  readonly servers: readonly LocalServer[];
  readonly #connections = new Connections();
  readonly #groups = new WeakMap<Redis, Redis[]>();

  private constructor(servers: readonly LocalServer[]) {
    this.servers = servers;
  }

  static async launch(count = 3): Promise<Masters> {
    return new Masters(await launchAll(count, {}));
  }

  get address(): Address {
    const [first, ...others] = this.servers.map(({ host, port }) => ({ host, port }));
    return { redis: { ...first }, masters: others };
  }

  connect(options?: ConnectOptions): Redis {
    const group = this.servers.map(
      ({ host, port }) => this.#connections.open({ redis: { host, port } }, options) as Redis,
    );
    const [first] = group;
    if (first === undefined) throw new Error("There are no masters");
    this.#groups.set(first, group);
    return first;
  }

  /** The connections to all masters that were made together with this one. */
  group(first: Redis): Redis[] {
    return this.#groups.get(first) ?? [first];
  }

  /** Fresh servers are young: they vote at once, unless told otherwise. */
  client(first: Redis, options: QuorumClientOptions = {}): QuorumClient {
    return createLockClient(this.group(first), { restartDelay: 0, ...options });
  }

  async admins(): Promise<Redis[]> {
    return this.servers.map((server) => this.#connections.admin(server));
  }

  async adminOf(_key: string): Promise<Redis> {
    return this.#connections.admin(this.servers[0] ?? { port: 0 });
  }

  async stop(): Promise<void> {
    this.#connections.close();
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}
