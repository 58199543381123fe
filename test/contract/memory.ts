import { EventEmitter } from "node:events";
import type { Redis } from "ioredis";
import type { QuorumClient } from "../../src/quorum/index.ts";
import type { Commands } from "../../src/redis/commands.ts";
import type { Link } from "../../src/redis/driver.ts";
import { TestClient, type TestLocksOptions } from "../../src/tools/testing/client.ts";
import { type Held, type Kept, Memory } from "../../src/tools/testing/memory.ts";
import type { Exemption } from "../support/exemption.ts";
import { linkOf, standIns } from "../support/link.ts";
import type { TopologyKind } from "../support/servers/topology.ts";

/** What the contract asks of a server beside its clients: what stands under a key. */
class Onlooker extends EventEmitter {
  readonly isCluster = false;
  readonly options = { keyPrefix: "" };
  readonly status = "ready";
  readonly #memory: Memory;

  constructor(memory: Memory) {
    super();
    this.#memory = memory;
  }

  async ping(): Promise<"PONG"> {
    return "PONG";
  }

  async exists(...keys: string[]): Promise<number> {
    return keys.filter((key) => this.#memory.get(key)).length;
  }

  async del(key: string): Promise<void> {
    this.#memory.drop(key);
  }

  async zcard(key: string): Promise<number> {
    return this.#memory.waiting(key).length;
  }

  /** Of a resource that several share: of the hold that lasts longest. */
  async pttl(key: string): Promise<number> {
    const kept = this.#memory.get<Kept & { holds?: ReadonlyMap<string, Kept> }>(key);
    const holds = [...(kept?.holds?.values() ?? [])].map((hold) => this.#memory.left(hold));
    return holds.length > 0 ? Math.max(...holds) : this.#memory.left(kept);
  }

  async hkeys(key: string): Promise<string[]> {
    const held = this.#memory.get<Held>(key);
    return held ? [held.hold] : [];
  }

  async pubsub(_: "NUMSUB", channel: string): Promise<unknown[]> {
    return [channel, this.#memory.listeners(channel)];
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
    const store = new Memory();
    const clients = new Set<TestClient>();
    const onlooker = (): Redis => {
      const made = new Onlooker(store);
      standIns.set(made, made as unknown as Link);
      return made as unknown as Redis;
    };
    return {
      name: "memory",
      address: { kind: "none" } as never,
      servers: [],
      connect: onlooker,
      client: (redis, options = {}) => {
        const client = new TestClient(store, clients, options as TestLocksOptions);
        return counted(client, redis) as unknown as QuorumClient;
      },
      admins: async () => [onlooker()],
      adminOf: async () => onlooker(),
      stop: async () => {},
    };
  },
};
