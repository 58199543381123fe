import type { Redis } from "ioredis";
import { createLockClient, type LockClient, type LockClientOptions } from "../../../src/index.ts";
import { createQuorumClient, type QuorumClientOptions } from "../../../src/quorum/index.ts";
import { type Connection, openConnection } from "../../support/servers/connection.ts";
import type { WorkerOptions } from "./orders.ts";

/** A worker's connection to Redis, or one to each master of a quorum. */
export function connect({ address, connect }: WorkerOptions): Connection[] {
  const servers = [address.redis, ...(address.masters ?? [])];
  return servers.map((redis) => openConnection({ ...address, redis }, connect));
}

/** On one connection any client; on several one of a quorum, which has `lock` only. */
export function createLocks(connections: readonly Connection[], { client }: WorkerOptions): LockClient {
  const [connection] = connections;
  if (connection && connections.length === 1)
    return createLockClient(connection, client as LockClientOptions);
  return createQuorumClient(connections as Redis[], client as QuorumClientOptions) as unknown as LockClient;
}
