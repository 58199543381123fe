import type { Redis } from "ioredis";
import { type LocalServer, launchServer } from "../../../tools/redis.ts";
import { until } from "../until.ts";
import type { Address, ConnectOptions } from "./connection.ts";
import { Connections } from "./connections.ts";
import { launchAll } from "./launch-all.ts";
import { isInStep, namedPrimary, seesAll } from "./sentinel-health.ts";
import { GROUP, hurry, SERVER_ARGS, sentinelOptions } from "./sentinel-setup.ts";
import type { Topology } from "./topology.ts";

/** See `hurry()`. */
const SETTLED = 600;
/** A failover takes a second or two, and more on a busy machine. */
const PATIENCE = 60_000;

export interface SentinelOptions {
  /** 1 when left out. */
  replicas?: number;
  /** 3 when left out; more than half of them elect the one that leads a failover. */
  sentinels?: number;
  /** After so many ms of silence a server counts as down; 500 when left out. */
  downAfter?: number;
}

/** What a failover has changed, and the ms until everything was usable again. */
export interface Failover {
  readonly from: LocalServer;
  readonly to: LocalServer;
  readonly took: number;
}

/**
 * A primary and its replicas, watched over by Sentinel.
 *
 * @example
 * const group = await SentinelGroup.launch();
 * const redis = group.connect(); // asks the sentinels for the primary
 * await redis.set("orders", "1");
 * const { to } = await group.killPrimary(); // the replica has taken over
 * await group.restore(); // the killed one is back, as a replica
 * await group.stop();
 */
export class SentinelGroup implements Topology {
  readonly name = "Sentinel";
  readonly servers: LocalServer[] = [];
  readonly sentinels: LocalServer[] = [];
  readonly #connections = new Connections();

  /** Resolves when the replicas are in step and every sentinel knows of them and of the others. */
  static async launch(options: SentinelOptions = {}): Promise<SentinelGroup> {
    const group = new SentinelGroup();
    try {
      await group.#launch(options);
      await group.#hurry(100);
      await group.usable();
      await group.#hurry(SETTLED);
    } catch (error) {
      await group.stop();
      throw error;
    }
    return group;
  }

  get address(): Address {
    const sentinels = this.sentinels.map(({ host, port }) => ({ host, port }));
    return { redis: { sentinels, name: GROUP } };
  }

  connect(options?: ConnectOptions): Redis {
    return this.#connections.open(this.address, options) as Redis;
  }

  async admins(): Promise<Redis[]> {
    const primary = await this.primary();
    const others = this.servers.filter((server) => server !== primary && server.state === "running");
    return [primary, ...others].map((server) => this.admin(server));
  }

  async adminOf(_key?: string): Promise<Redis> {
    return this.admin(await this.primary());
  }

  /** A straight connection to a server, or a sentinel. */
  admin(server: LocalServer): Redis {
    return this.#connections.admin(server);
  }

  /** The server that most of the running sentinels name. */
  async primary(): Promise<LocalServer> {
    const named = await this.#named();
    const votes = (port: number) => named.filter((one) => one === port).length;
    const [port] = [...named].sort((one, other) => votes(other) - votes(one));
    const server = this.servers.find((one) => one.port === port);
    if (server === undefined) throw new Error("No running sentinel names a primary");
    return server;
  }

  /** Whether one primary takes writes, all other running servers copy it, and all running sentinels have seen that. */
  async isUsable(): Promise<boolean> {
    const [port, ...others] = new Set(await this.#named());
    const primary = this.#running().find((server) => server.port === port);
    if (primary === undefined || others.length > 0) return false;
    const replicas = this.#running().filter((server) => server !== primary);
    const copies = replicas.map((server) => this.admin(server));
    if (!(await isInStep(this.admin(primary), copies, primary.port))) return false;
    const replicaPorts = replicas.map((server) => server.port);
    const expected = { replicaPorts, otherSentinels: this.sentinels.length - 1 };
    const views = this.#watching().map((sentinel) => seesAll(sentinel, expected));
    return (await Promise.all(views)).every(Boolean);
  }

  usable(): Promise<true> {
    return until(() => this.isUsable(), { what: "the Sentinel group to be usable", timeout: PATIENCE });
  }

  /** Kills the primary (SIGKILL) and waits until the sentinels have put a replica in its place. */
  killPrimary(): Promise<Failover> {
    return this.#replacePrimary((primary) => primary.kill());
  }

  /** Has a replica put in the place of a primary that is well (SENTINEL FAILOVER). */
  failover(): Promise<Failover> {
    return this.#replacePrimary(async () => {
      await this.#watching()[0]?.call("SENTINEL", "FAILOVER", GROUP);
    });
  }

  /** Starts all ended servers again as empty replicas, and ended sentinels with what they knew. */
  async restore(): Promise<void> {
    const primary = await this.primary();
    for (const server of [...this.servers, ...this.sentinels]) {
      const isReplica = server.state === "ended" && server !== primary && this.servers.includes(server);
      if (server.state === "ended") await server.restart();
      server.resume();
      if (isReplica) await this.admin(server).replicaof(primary.host, primary.port);
    }
    await this.#hurry(SETTLED);
    await this.usable();
  }

  async stop(): Promise<void> {
    this.#connections.close();
    await Promise.all([...this.sentinels, ...this.servers].map((server) => server.stop()));
  }

  async #launch({ replicas = 1, sentinels = 3, downAfter = 500 }: SentinelOptions): Promise<void> {
    const primary = await launchServer({ args: SERVER_ARGS });
    this.servers.push(primary);
    const args = [...SERVER_ARGS, "--replicaof", primary.host, `${primary.port}`];
    this.servers.push(...(await launchAll(replicas, { args })));
    const [first, ...copies] = this.servers.map((server) => this.admin(server));
    // A sentinel looks for replicas when it starts, and then not for a while.
    await until(() => first && isInStep(first, copies, primary.port), { what: "the replicas to be in step" });
    const quorum = Math.floor(sentinels / 2) + 1;
    const watcher = sentinelOptions({ primaryPort: primary.port, quorum, downAfter });
    this.sentinels.push(...(await launchAll(sentinels, watcher)));
  }

  async #replacePrimary(how: (primary: LocalServer) => Promise<void>): Promise<Failover> {
    const from = await this.primary();
    const start = performance.now();
    await how(from);
    await until(async () => (await this.primary()) !== from, { what: "a new primary", timeout: PATIENCE });
    await this.usable();
    return { from, to: await this.primary(), took: performance.now() - start };
  }

  #running(): LocalServer[] {
    return this.servers.filter((server) => server.state === "running");
  }

  #watching(): Redis[] {
    return this.sentinels.filter((one) => one.state === "running").map((one) => this.admin(one));
  }

  async #hurry(publishPeriod: number): Promise<void> {
    await Promise.all(this.#watching().map((sentinel) => hurry(sentinel, publishPeriod)));
  }

  #named(): Promise<number[]> {
    return Promise.all(this.#watching().map(namedPrimary));
  }
}
