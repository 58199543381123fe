import type { Redis } from "ioredis";
import {
  createQuorumClient,
  type QuorumClient,
  type QuorumClientOptions,
} from "../../../src/quorum/index.ts";
import type { LocalServer } from "../../../tools/redis/index.ts";
import type { Address, ConnectOptions } from "./connection.ts";
import { Connections } from "./connections.ts";
import { launchAll } from "./launch-all.ts";
import type { Topology } from "./topology.ts";

/**
 * Masters that know nothing of each other, for a quorum. A connection to the first one represents a
 * connection to all of them.
 *
 * @example
 * const masters = await Masters.launch();
 * const redis = masters.connect();
 * const locks = masters.client(redis); // on three connections
 * await masters.servers[1]?.kill();
 * await masters.stop();
 */
export class Masters implements Topology {
  readonly name: string;
  readonly servers: readonly LocalServer[];
  readonly #common: Pick<ConnectOptions, "driver" | "keyPrefix">;
  readonly #connections = new Connections();
  readonly #groups = new WeakMap<Redis, Redis[]>();

  private constructor(servers: readonly LocalServer[], common: Pick<ConnectOptions, "driver" | "keyPrefix">) {
    this.name = `${servers.length} masters`;
    this.servers = servers;
    this.#common = common;
  }

  /** `common`: the default options of all connections. */
  static async launch(
    count = 3,
    common: Pick<ConnectOptions, "driver" | "keyPrefix"> = {},
  ): Promise<Masters> {
    return Masters.of(await launchAll(count, {}), common);
  }

  /** For servers that already run, and are stopped with it. */
  static of(
    servers: readonly LocalServer[],
    common: Pick<ConnectOptions, "driver" | "keyPrefix"> = {},
  ): Masters {
    return new Masters(servers, common);
  }

  get address(): Address {
    const { driver, ...common } = this.#common;
    const [first, ...masters] = this.servers.map(({ host, port }) => ({ host, port, ...common }));
    return { redis: { ...first }, masters, ...(driver && { driver }) };
  }

  connect(options?: ConnectOptions): Redis {
    const group = this.servers.map(
      ({ host, port }) =>
        this.#connections.open({ redis: { host, port } }, { ...this.#common, ...options }) as Redis,
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

  /**
   * Fresh servers are young: by default they vote at once; and on a busy machine none counts as
   * silent soon.
   */
  client(first: Redis, options: QuorumClientOptions = {}): QuorumClient {
    return createQuorumClient(this.group(first), { restartDelay: 0, nodeTimeout: 2_000, ...options });
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
