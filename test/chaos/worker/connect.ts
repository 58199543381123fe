import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import type { Redis } from "ioredis";
import {
  createLockClient,
  type LockClient,
  type LockClientOptions,
  type NodeRedisLike,
} from "../../../src/index.ts";
import { createQuorumClient, type QuorumClientOptions } from "../../../src/quorum/index.ts";
import { nodeRedisAt } from "../../support/node-redis.ts";
import { type Connection, openConnection } from "../../support/servers/connection.ts";
import type { Dice } from "../dice.ts";
import { NODE_REDIS } from "../settings.ts";
import type { WorkerOptions } from "./orders.ts";

/** A worker's connection to Redis, of either library. */
export interface Wire {
  readonly given: Connection | NodeRedisLike;
  /** Resolves when it can be used. */
  readonly ready: Promise<unknown>;
  /** Breaks it as a network would. */
  reconnect(dice: Dice): void;
  close(): void;
}

/** A worker's connection to Redis, or one to each master of a quorum. */
export function connect({ address, connect: { driver, keyPrefix } }: WorkerOptions): Wire[] {
  const servers = [address.redis, ...(address.masters ?? [])];
  return servers.map((redis) =>
    driver === NODE_REDIS
      ? wireOf({ ...address, redis: { ...redis, keyPrefix } })
      : ioredisWire(openConnection({ ...address, redis }, { driver, keyPrefix })),
  );
}

function ioredisWire(given: Connection): Wire {
  return {
    given,
    // Not by `once()` of node:events, which an error on the way would end.
    ready: new Promise<void>((ready) => given.once("ready", ready)),
    reconnect: () => given.disconnect(true),
    close: () => given.disconnect(),
  };
}

function wireOf(address: WorkerOptions["address"]): Wire {
  const given = nodeRedisAt(6, address);
  given.on("error", () => {});
  return {
    given,
    ready: given.connect(),
    // It has no method for it, and of a Cluster and of Sentinel other clients carry the locks: any
    // connection of this process is broken, also one that carries messages.
    reconnect: (dice) => {
      if (sockets.size > 0) dice.pick([...sockets]).destroy();
    },
    close: () => {
      if (given.isOpen) given.destroy();
    },
  };
}

/**
 * Those that are connected. One that is destroyed while it connects emits no error, as it would if
 * a network failed, and node-redis waits for it forever.
 */
const sockets = new Set<Socket>();
subscribe("net.client.socket", (message) => {
  const { socket } = message as { socket: Socket };
  socket.once("connect", () => sockets.add(socket));
  socket.once("close", () => sockets.delete(socket));
});

/** On one connection any client; on several one of a quorum, which has `lock` only. */
export function createLocks(wires: readonly Wire[], { client }: WorkerOptions): LockClient {
  const [wire] = wires;
  if (wire && wires.length === 1) return createLockClient(wire.given, client as LockClientOptions);
  const masters = wires.map(({ given }) => given as Redis);
  return createQuorumClient(masters, client as QuorumClientOptions) as unknown as LockClient;
}
