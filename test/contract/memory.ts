import { EventEmitter } from "node:events";
import type { Redis } from "ioredis";
import type { QuorumClient } from "../../src/quorum/index.ts";
import type { Commands } from "../../src/redis/commands.ts";
import type { Link } from "../../src/redis/driver.ts";
import { TestClient, type TestLocksOptions } from "../../src/tools/testing/client.ts";
import type { MemoryRedis } from "../../src/tools/testing/memory-redis.ts";
import { TestNetwork } from "../../src/tools/testing/test-network.ts";
import type { Exemption } from "../support/exemption.ts";
import { linkOf, standIns } from "../support/link.ts";
import type { TopologyKind } from "../support/servers/topology.ts";

/** What the contract asks of a server beside its clients. */
class Onlooker extends EventEmitter {
  readonly isCluster = false;
  readonly options = { keyPrefix: "" };
  readonly status = "ready";
  readonly #redis: MemoryRedis;

  constructor(redis: MemoryRedis) {
    super();
    this.#redis = redis;
  }

  /** With the bytes of each word as characters. */
  #call(...words: string[]): unknown {
    return this.#redis.call(words.map((word) => Buffer.from(word).toString("latin1")));
  }

  async ping(): Promise<"PONG"> {
    return "PONG";
  }

  async exists(...keys: string[]): Promise<unknown> {
    return this.#call("EXISTS", ...keys);
  }

  async del(key: string): Promise<unknown> {
    return this.#call("DEL", key);
  }

  async zcard(key: string): Promise<unknown> {
    return this.#call("ZCARD", key);
  }

  async pttl(key: string): Promise<unknown> {
    return this.#call("PTTL", key);
  }

  async hkeys(key: string): Promise<unknown> {
    return this.#call("HKEYS", key);
  }

  async pubsub(_: "NUMSUB", channel: string): Promise<unknown> {
    return this.#call("PUBSUB", "NUMSUB", channel);
  }

  disconnect(): void {}

  /**
   * These are only counted: a client in memory makes no connection, and this one stands for what it
   * sends.
   */
  send(): void {}
  command(): void {}
  listen(): void {}
  open(): void {}
  openOnce(): void {}
}

/** What the contract cannot ask of a memory, and why. */
const EXEMPTIONS: readonly Exemption[] = [
  { tests: [/^excludes processes:/], why: "no other process reaches the memory of this one" },
  {
    tests: [
      /^are not lost when they overtake/,
      /^tryLock\(\) is not answered from what was true before/,
      /^is over before Redis admits/,
    ],
    why: "it keeps an answer of Redis: in memory none is late",
  },
  { tests: [/^`await using` closes the client and its own connections/], why: "there are no connections" },
];

/** Counts what a client sends as commands on its onlooker. */
function counted(client: TestClient, onlooker: Redis): TestClient {
  const { commands } = (client as unknown as { locks: { commands: Commands } }).locks;
  const send = commands.send.bind(commands);
  commands.send = (...args) => {
    linkOf(onlooker).send(null as never);
    send(...args);
  };
  return client;
}

/** The memory of a test, as a topology for the contract. */
export const memory: TopologyKind = {
  name: "memory",
  exemptions: EXEMPTIONS,
  launch: async () => {
    const network = new TestNetwork();
    const clients = new Set<TestClient>();
    const onlooker = (): Redis => {
      const made = new Onlooker(network.redis);
      standIns.set(made, made as unknown as Link);
      return made as unknown as Redis;
    };
    return {
      name: "memory",
      address: { kind: "none" } as never,
      servers: [],
      connect: onlooker,
      client: (redis, options = {}) => {
        const client = new TestClient(network, clients, options as TestLocksOptions);
        return counted(client, redis) as unknown as QuorumClient;
      },
      admins: async () => [onlooker()],
      adminOf: async () => onlooker(),
      stop: async () => {},
    };
  },
};
