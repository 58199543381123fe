import type { Address } from "../../support/servers/connection.ts";
import { type Proxied, throughProxies } from "../../support/servers/through-proxies.ts";
import type { Topology } from "../../support/servers/topology.ts";
import type { TcpProxy } from "../../support/tcp-proxy.ts";

/** A proxy for every worker in front of every server, so that one of them alone can be cut off. */
export class Wires {
  /** So many servers the others can do without; 0 where each has something that the others have not. */
  readonly spare: number;
  /** By worker. */
  readonly #ways: readonly Proxied[];

  private constructor(ways: readonly Proxied[], spare: number) {
    this.#ways = ways;
    this.spare = spare;
  }

  static async lay(topology: Topology, workers: number, spare = 0): Promise<Wires> {
    const ways = Array.from({ length: workers }, () => throughProxies(topology));
    return new Wires(await Promise.all(ways), spare);
  }

  /** How this worker gets to Redis. */
  address(worker: number): Address {
    const way = this.#ways[worker];
    if (!way) throw new RangeError(`There is no wire for worker ${worker}`);
    return way.address;
  }

  /** The places of the servers. */
  get servers(): readonly number[] {
    return [...(this.#ways[0]?.proxies.keys() ?? [])];
  }

  /** Those of one worker, to these servers. */
  of(worker: number, servers = this.servers): readonly TcpProxy[] {
    return servers.flatMap((server) => this.#ways[worker]?.proxies[server] ?? []);
  }

  /** Everybody's, to these servers. */
  all(servers = this.servers): readonly TcpProxy[] {
    return this.#ways.flatMap((_, worker) => this.of(worker, servers));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#ways.map((way) => way.stop()));
  }
}
