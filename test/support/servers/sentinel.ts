import type { Redis } from "ioredis";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { until } from "../until.ts";
import type { Address, ConnectOptions } from "./connection.ts";
import { Connections } from "./connections.ts";
import { launchAll } from "./launch-all.ts";
import { isInStep } from "./sentinel-health.ts";
import { copying, GROUP, sentinelOptions, serverOptions } from "./sentinel-setup.ts";
import { Watch } from "./sentinel-watch.ts";
import type { Topology } from "./topology.ts";

/** How often the sentinels publish to each other, in ms: see `Watch.hurry()`. */
const SETTLED = 600;
/** A failover takes a second or two, and more on a busy machine. */
const PATIENCE = 60_000;
/** After this many ms an ordered failover is ordered again. */
const AGAIN_AFTER = 10_000;

export interface SentinelOptions {
  /** Default: 1. */
  replicas?: number;
  /** Default: 3; more than half of them elect the leader of a failover. */
  sentinels?: number;
  /** After this many ms of silence a server counts as down; default: 500. */
  downAfter?: number;
}

/** The result of a failover, and the ms until everything was usable again. */
export interface Failover {
  readonly from: LocalServer;
  readonly to: LocalServer;
  readonly took: number;
}

/**
 * A primary and its replicas, monitored by Sentinel.
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
  readonly #watch = new Watch(() => this.#running(this.sentinels).map((one) => this.admin(one)));

  /**
   * Resolves when the replicas are in step and every sentinel knows them and the other sentinels.
   */
  static async launch(options: SentinelOptions = {}): Promise<SentinelGroup> {
    const group = new SentinelGroup();
    try {
      await group.#launch(options);
      await group.#watch.hurry(100);
      await group.usable();
      await group.#watch.hurry(SETTLED);
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
    const others = this.#running(this.servers).filter((server) => server !== primary);
    return [primary, ...others].map((server) => this.admin(server));
  }

  async adminOf(_key?: string): Promise<Redis> {
    return this.admin(await this.primary());
  }

  /** A direct connection to a server, or a sentinel. */
  admin(server: LocalServer): Redis {
    return this.#connections.admin(server);
  }

  /** The server that most of the running sentinels name. */
  async primary(): Promise<LocalServer> {
    const port = await this.#watch.mostNamed();
    const server = this.servers.find((one) => one.port === port);
    if (server === undefined) throw new Error("No running sentinel names a primary");
    return server;
  }

  /**
   * Does one primary take writes, do all other running servers copy it, and have all running
   * sentinels seen that?
   */
  async isUsable(): Promise<boolean> {
    const port = await this.#watch.agreedOn();
    const running = this.#running(this.servers);
    const primary = running.find((server) => server.port === port);
    if (primary === undefined) return false;
    const replicas = running.filter((server) => server !== primary);
    const copies = replicas.map((server) => this.admin(server));
    if (!(await isInStep(this.admin(primary), copies, primary.port))) return false;
    const replicaPorts = replicas.map((server) => server.port);
    return this.#watch.seesAll({ replicaPorts, otherSentinels: this.sentinels.length - 1 });
  }

  usable(): Promise<true> {
    return until(() => this.isUsable(), { what: "the Sentinel group to be usable", timeout: PATIENCE });
  }

  /** Kills the primary (SIGKILL) and waits until the sentinels have promoted a replica. */
  killPrimary(): Promise<Failover> {
    return this.#replacePrimary((primary) => primary.kill());
  }

  /** Replaces a healthy primary by a replica (SENTINEL FAILOVER). */
  failover(): Promise<Failover> {
    return this.#replacePrimary(
      () => this.#watch.failover(),
      () => this.#watch.order().catch(() => {}),
    );
  }

  /**
   * Starts all ended servers again as empty replicas, and ended sentinels with their former
   * knowledge.
   */
  async restore(): Promise<void> {
    const primary = await this.primary();
    for (const server of [...this.servers, ...this.sentinels]) {
      // From its first moment: for a while a sentinel may still name it as the primary, and clients
      // that reconnect to it would take locks there.
      const isReplica = server !== primary && this.servers.includes(server);
      if (server.state === "ended") await server.restart(isReplica ? copying(primary) : []);
      server.resume();
    }
    await this.#watch.hurry(SETTLED);
    await this.usable();
  }

  async stop(): Promise<void> {
    this.#connections.close();
    await Promise.all([...this.sentinels, ...this.servers].map((server) => server.stop()));
  }

  async #launch({ replicas = 1, sentinels = 3, downAfter = 500 }: SentinelOptions): Promise<void> {
    const primary = await launchServer(serverOptions());
    this.servers.push(primary);
    this.servers.push(...(await launchAll(replicas, serverOptions(primary))));
    const [first, ...copies] = this.servers.map((server) => this.admin(server));
    // A sentinel searches for replicas when it starts, and then not for a while.
    await until(() => first && isInStep(first, copies, primary.port), { what: "the replicas to be in step" });
    const quorum = Math.floor(sentinels / 2) + 1;
    const watcher = sentinelOptions({ primaryPort: primary.port, quorum, downAfter });
    this.sentinels.push(...(await launchAll(sentinels, watcher)));
  }

  /**
   * `again`: the action to repeat if it had no effect. On a busy machine another sentinel may undo
   * a failover that was ordered and accepted, because it has not received word of it in time.
   */
  async #replacePrimary(
    how: (primary: LocalServer) => Promise<void>,
    again: () => Promise<void> = async () => {},
  ): Promise<Failover> {
    const from = await this.primary();
    const start = performance.now();
    await how(from);
    let since = performance.now();
    const isReplaced = async (): Promise<boolean> => {
      if ((await this.primary()) !== from) return true;
      if (performance.now() - since < AGAIN_AFTER) return false;
      await again();
      since = performance.now();
      return false;
    };
    await until(isReplaced, { what: "a new primary", timeout: PATIENCE });
    await this.usable();
    return { from, to: await this.primary(), took: performance.now() - start };
  }

  #running(all: LocalServer[]): LocalServer[] {
    return all.filter((server) => server.state === "running");
  }
}
