import type { Redis } from "ioredis";
import type { LockClientOptions } from "../../../src/index.ts";
import type { QuorumClient } from "../../../src/quorum/index.ts";
import type { Exemption } from "../exemption.ts";
import type { Parties, Party } from "../fixture.ts";
import type { Address, Connection, ConnectOptions } from "./connection.ts";

/** A running Redis, in one of the shapes that applications use. */
export interface Topology {
  readonly name: string;
  /** Its address, for another process too. */
  readonly address: Address;
  /** The servers with data, running or not; for a Cluster its nodes. */
  readonly servers: readonly { readonly host: string; readonly port: number }[];
  /** A new connection, as an application makes it. `stop()` closes it, if it is still open. */
  connect(options?: ConnectOptions): Connection;
  /** If a client needs several connections: all that were made together with this one. */
  group?(connection: Redis): Redis[];
  /** Makes the client, if it is not made from one connection. */
  client?(connection: Redis, options?: LockClientOptions): QuorumClient;
  /** Direct connections to all running servers with data, primaries first; without a key prefix. */
  admins(): Promise<Redis[]>;
  /** A direct connection to the server that takes writes of this key, named as Redis sees it. */
  adminOf(key: string): Promise<Redis>;
  /** Closes all connections, stops all servers and removes their folders. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * An available topology: a value, so that one suite runs over many. Nothing starts before
 * `launch()`.
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
  /** Tests of the contract that do not run on it. Left out: all of them run. */
  readonly exemptions?: readonly Exemption[];
  /** Hooks and tests run in this. Left out: as they are. */
  readonly during?: <T>(work: () => Promise<T>) => Promise<T>;
  /** Starts a server that a test may empty and restart. Left out: a real one. */
  readonly ownServer?: () => Promise<OwnServer>;
}

/** A server that knows nothing after a restart. */
export interface OwnServer {
  /** A party whose connection goes to it. */
  join(parties: Parties, client: LockClientOptions): Promise<Party>;
  restart(): Promise<unknown>;
  stop(): Promise<unknown>;
}
