import type { TcpProxy } from "../../support/tcp-proxy.ts";
import type { Address } from "../../support/topologies/connection.ts";
import { type Proxied, throughProxies } from "../../support/topologies/through-proxies.ts";
import type { Topology } from "../../support/topologies/topology.ts";

/** A proxy for every worker in front of every server, so that one of them alone can be cut off. */
export class Wires {
  /** By worker. */
  readonly #ways: readonly Proxied[];

  private constructor(ways: readonly Proxied[]) {
    this.#ways = ways;
  }

  static async lay(topology: Topology, workers: number): Promise<Wires> {
    return new Wires(await Promise.all(Array.from({ length: workers }, () => throughProxies(topology))));
  }

  /** How this worker gets to Redis. */
  address(worker: number): Address {
    const way = this.#ways[worker];
    if (!way) throw new RangeError(`There is no wire for worker ${worker}`);
    return way.address;
  }

  /** Those of one worker. */
  of(worker: number): readonly TcpProxy[] {
    return this.#ways[worker]?.proxies ?? [];
  }

  get all(): readonly TcpProxy[] {
    return this.#ways.flatMap(({ proxies }) => proxies);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#ways.map((way) => way.stop()));
  }
}
