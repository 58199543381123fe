import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { Lease } from "../../src/index.ts";
import { createQuorumClient, type QuorumClient, type QuorumClientOptions } from "../../src/quorum/index.ts";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import { Keys } from "../../src/redis/keys.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { freshName } from "./fixture.ts";
import { trackUnhandled, type UnhandledTracker } from "./leaks.ts";
import { loadScripts } from "./load-scripts.ts";
import type { Match } from "./matches.ts";
import { present } from "./present.ts";
import { openConnection } from "./servers/connection.ts";
import { launchAll } from "./servers/launch-all.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

/** A client of a quorum, and its connections in the order of the nodes. */
export interface QuorumParty {
  readonly nodes: Redis[];
  readonly locks: QuorumClient;
}

const KEYS = new Keys("", false);

/**
 * For faults of a quorum: servers for one test file, and for each test a proxy before each of them
 * and a lock's name. Registers its hooks when it is created. After a test all servers run; no test
 * may leave an unhandled rejection, a process warning, or its lock.
 *
 * @example
 * const stage = new QuorumStage(3);
 * it("loses a node", async () => {
 *   const near = await stage.join({}, "proxies");
 *   stage.proxies[2]?.freeze();
 *   await near.locks.lock(stage.name).lock();
 * });
 */
export class QuorumStage {
  readonly proxies: TcpProxy[] = [];
  name = "";
  readonly #count: number;
  readonly #launch: (count: number) => Promise<LocalServer[]>;
  #servers: LocalServer[] = [];
  #admins: Redis[] = [];
  readonly #parties: QuorumParty[] = [];
  #quiet: UnhandledTracker | undefined;

  constructor(count: number, launch = (count: number) => launchAll(count, {})) {
    this.#count = count;
    this.#launch = launch;
    beforeAll(async () => {
      this.#servers = await this.#launch(this.#count);
      this.#admins = this.#servers.map(({ port }) => open(port));
    });
    beforeEach(async () => {
      this.#quiet = trackUnhandled();
      this.name = freshName("quorum");
      this.proxies.splice(0, 10, ...(await Promise.all(this.#servers.map((one) => TcpProxy.start(one)))));
      for (const admin of this.#admins) await loadScripts(admin, quorumLua);
    });
    afterEach(async () => {
      for (const server of this.#servers) {
        if (server.state === "suspended") server.resume();
        if (server.state === "ended") await server.restart();
      }
      for (const proxy of this.proxies) {
        proxy.thaw();
        proxy.refuse(false);
      }
      for (const { locks, nodes } of this.#parties.splice(0)) {
        await locks.close({ grace: 1_000 });
        for (const node of nodes) node.disconnect();
      }
      await Promise.all(this.proxies.map((proxy) => proxy.stop()));
      await this.#quiet?.assertNone().finally(this.#quiet.stop);
    });
    afterAll(async () => {
      for (const admin of this.#admins) admin.disconnect();
      await Promise.all(this.#servers.map((server) => server.stop()));
    });
  }

  /** By the number of the node, counted from 1. */
  server(node: number): LocalServer {
    return present(this.#servers[node - 1]);
  }

  proxy(node: number): TcpProxy {
    return present(this.proxies[node - 1]);
  }

  /** A direct connection to this node. */
  admin(node: number): Redis {
    return present(this.#admins[node - 1]);
  }

  /**
   * A further client, closed after the test. Fresh servers are young: by default they vote at once.
   */
  async join(
    client: QuorumClientOptions = {},
    way: "straight" | "proxies" = "straight",
    ready = true,
  ): Promise<QuorumParty> {
    const ports = (way === "proxies" ? this.proxies : this.#servers).map(({ port }) => port);
    const nodes = ports.map(open);
    const locks = createQuorumClient(nodes, { restartDelay: 0, ...client });
    locks.on("error", () => {}); // failed renewals are the subject of tests
    this.#parties.push({ nodes, locks });
    if (ready) await Promise.all(nodes.map((node) => node.ping()));
    return { nodes, locks };
  }

  /** The holder of the present test's lock at each running node; null: none. */
  async holders(name = this.name): Promise<(string | null)[]> {
    const living = this.#admins.filter((_, i) => this.#servers[i]?.state === "running");
    const values = await Promise.all(living.map((admin) => admin.get(this.key(name))));
    return values.map((value) => value?.split(" ")[0] ?? null);
  }

  /** Does one hold have the present test's lock at all nodes? */
  async isEverywhere(): Promise<boolean> {
    const holders = await this.holders();
    return new Set(holders).size === 1 && holders[0] !== null;
  }

  /**
   * Each has the present test's lock at all nodes once, so that they know each other; then it is free.
   * RACE: a majority is enough for a lease, and a vote that comes after its release would be in the way
   * of what a test does next.
   */
  async warm(...parties: readonly QuorumParty[]): Promise<void> {
    for (const { locks } of parties) {
      const lease = await locks.lock(this.name).lock();
      await until(() => this.isEverywhere());
      await lease.unlock();
      await this.free();
    }
  }

  /** Waits until no running node has the present test's lock. */
  async free(): Promise<void> {
    await until(async () => (await this.holders()).every((holder) => holder === null));
  }

  /** How many clients are subscribed to the releases of the present test's lock at this node. */
  async listeners(node: number): Promise<number> {
    const [, count] = await this.admin(node).pubsub("NUMSUB", this.#free);
    return Number(count);
  }

  /** Is one client subscribed to them at every node? */
  async isHeard(): Promise<boolean> {
    const counts = await Promise.all(this.#admins.map((_, i) => this.listeners(i + 1)));
    return counts.every((count) => count === 1);
  }

  /**
   * Ends a hold of the present test's lock at this node only, like a release that reaches one node
   * after the other.
   */
  async releaseAt(node: number, hold: string, { token }: Lease): Promise<void> {
    const keys = [this.key(), this.clock];
    await this.admin(node).eval(quorumLua.release.lua, keys.length, ...keys, hold, this.#free, `${token}`);
  }

  /**
   * Cuts this client, which must use the proxies, off from the node; resolves when the client
   * knows.
   */
  async cutOff(node: number, { nodes }: QuorumParty): Promise<void> {
    this.proxy(node).refuse(true);
    this.proxy(node).cut();
    await until(() => nodes[node - 1]?.status !== "ready");
  }

  /** The release channel. */
  get #free(): string {
    return `${this.key()}:free`;
  }

  key(name = this.name): string {
    return KEYS.ofQuorum(name).lock;
  }

  /** The key of the nodes' clocks. */
  readonly clock = KEYS.ofQuorum("").clock;
}

/** Matches a run of this script. Servers of a stage know all scripts: none is sent whole. */
export function runsQuorum(script: keyof typeof quorumLua): Match {
  return ([name, sha]) => name === "evalsha" && sha === quorumLua[script].sha;
}

const open = (port: number): Redis => openConnection({ redis: { host: "127.0.0.1", port } }) as Redis;
