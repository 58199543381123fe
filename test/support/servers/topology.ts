import type { Redis } from "ioredis";
import type { LockClientOptions } from "../../../src/index.ts";
import type { QuorumClient } from "../../../src/quorum/index.ts";
import type { Address, Connection, ConnectOptions } from "./connection.ts";

/** A Redis that runs, in one of the shapes in which applications have it. */
export interface Topology {
  readonly name: string;
  /** The way to it, for another process too. */
  readonly address: Address;
  /** The servers with data, running or not; of a Cluster its nodes. */
  readonly servers: readonly { readonly host: string; readonly port: number }[];
  /** A new connection, as an application makes it. `stop()` closes it, if nobody has. */
  connect(options?: ConnectOptions): Connection;
  /** Where a client needs several connections: all that were made together with this one. */
  group?(connection: Redis): Redis[];
  /** Where a client is not made of one connection. */
  client?(connection: Redis, options?: LockClientOptions): QuorumClient;
  /** Straight connections to all servers with data that run, primaries first; without a key prefix. */
  admins(): Promise<Redis[]>;
  /** A straight connection to the server that takes writes of this key, named as Redis sees it. */
  adminOf(key: string): Promise<Redis>;
  /** Closes all connections, stops all servers and removes their folders. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * A topology that can be had: a value, so that one suite runs over many. Nothing starts before `launch()`.
 *
 * @example
 * describe.each(topologies)("on $name", ({ launch }) => {
 *   let topology: Topology;
 *   beforeAll(async () => {
 *     topology = await launch();
 *   });
 *   afterAll(() => topology.stop());
 *   it("answers", async () => expect(await topology.connect().ping()).toBe("PONG"));
 * });
 */
export interface TopologyKind<T extends Topology = Topology> {
  readonly name: string;
  readonly launch: () => Promise<T>;
  /** Why a test of the contract does not run on it. Left out: all of them do. */
  readonly excuse?: (test: string) => string | undefined;
}
