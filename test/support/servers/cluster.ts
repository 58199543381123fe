import type { Cluster, Redis } from "ioredis";
import type { LocalServer } from "../../../tools/redis/index.ts";
import { until } from "../until.ts";
import { isHealthy } from "./cluster-health.ts";
import { type ClusterNode, owns, type Peer, peersOf } from "./cluster-node.ts";
import { type ClusterOptions, join, launchNodes } from "./cluster-setup.ts";
import type { Address, ConnectOptions } from "./connection.ts";
import { Connections } from "./connections.ts";
import { type MoveStep, SlotMove } from "./slot-move.ts";
import type { Topology } from "./topology.ts";

/** Elections take seconds, and more on a busy machine. */
const PATIENCE = 60_000;

/**
 * A primary that was killed, the replica in its place, and the ms until the whole Cluster was
 * usable again.
 */
export interface Promotion {
  readonly killed: ClusterNode;
  readonly promoted: ClusterNode;
  readonly took: number;
}

/**
 * A Redis Cluster of private servers.
 *
 * @example
 * const cluster = await RedisCluster.launch({ replicas: 1 });
 * const redis = cluster.connect();
 * await redis.set("orders", "1");
 * const { took } = await cluster.killPrimaryOf("orders"); // a replica has taken over
 * await cluster.restore(); // the killed one is back, as a replica
 * await cluster.stop();
 */
export class RedisCluster implements Topology {
  readonly name = "Cluster";
  readonly nodes: readonly ClusterNode[];
  readonly #connections: Connections;

  private constructor(nodes: readonly ClusterNode[], connections: Connections) {
    this.nodes = nodes;
    this.#connections = connections;
  }

  /** Resolves when the Cluster is usable: about 2.5 s, of which Redis itself takes 2. */
  static async launch(options: ClusterOptions = {}): Promise<RedisCluster> {
    const connections = new Connections();
    const nodes = await launchNodes(connections, options);
    const cluster = new RedisCluster(nodes, connections);
    try {
      await join(nodes, options.primaries ?? 3);
      await cluster.usable();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  get servers(): LocalServer[] {
    return this.nodes.map(({ server }) => server);
  }

  get address(): Address & { nodes: { host: string; port: number }[] } {
    return { redis: {}, nodes: this.nodes.map(({ server: { host, port } }) => ({ host, port })) };
  }

  connect(options?: ConnectOptions): Cluster {
    return this.#connections.open(this.address, options) as Cluster;
  }

  async admins(): Promise<Redis[]> {
    const ids = new Set((await this.primaries()).map(({ id }) => id));
    const rank = (node: ClusterNode) => (ids.has(node.id) ? 0 : 1);
    return [...this.#running()].sort((one, other) => rank(one) - rank(other)).map(({ admin }) => admin);
  }

  async adminOf(key: string): Promise<Redis> {
    return (await this.primaryOf(key)).admin;
  }

  async slotOf(key: string): Promise<number> {
    return Number(await this.#anyNode().admin.cluster("KEYSLOT", key));
  }

  /** The running nodes that claim to own slots. */
  async primaries(): Promise<ClusterNode[]> {
    return this.#select((own) => own.isPrimary && own.slots.length > 0);
  }

  /** The running node that claims to own this key, or slot. */
  async primaryOf(keyOrSlot: string | number): Promise<ClusterNode> {
    const slot = typeof keyOrSlot === "number" ? keyOrSlot : await this.slotOf(keyOrSlot);
    const [owner] = await this.#select((own) => own.isPrimary && owns(own, slot));
    if (owner === undefined) throw new Error(`No running node owns slot ${slot}`);
    return owner;
  }

  /**
   * Does every slot have a running owner on which all running nodes agree, and are the replicas in
   * step?
   */
  isUsable(): Promise<boolean> {
    return isHealthy(this.#running());
  }

  usable(): Promise<true> {
    return until(() => this.isUsable(), { what: "the Cluster to be usable", timeout: PATIENCE });
  }

  /**
   * Kills a primary (SIGKILL) and waits until a replica has its place and the Cluster is usable.
   */
  async killPrimaryOf(keyOrSlot: string | number): Promise<Promotion> {
    const slot = typeof keyOrSlot === "number" ? keyOrSlot : await this.slotOf(keyOrSlot);
    const killed = await this.primaryOf(slot);
    const replicas = (await killed.admin.call("CLUSTER", "REPLICAS", killed.id)) as string[];
    if (replicas.length === 0) throw new Error(`The primary of slot ${slot} has no replica to promote`);
    const start = performance.now();
    await killed.server.kill();
    await this.usable();
    return { killed, promoted: await this.primaryOf(slot), took: performance.now() - start };
  }

  /** The first replica of a primary. */
  async replicaOf(primary: ClusterNode): Promise<ClusterNode> {
    const [line] = (await primary.admin.call("CLUSTER", "REPLICAS", primary.id)) as string[];
    const replica = this.nodes.find(({ id }) => line?.startsWith(id));
    if (replica === undefined) throw new Error("The primary has no replica");
    return replica;
  }

  /**
   * Makes a replica take over from a healthy primary (CLUSTER FAILOVER), and waits until the
   * Cluster is usable.
   */
  async failOver(keyOrSlot: string | number): Promise<{ took: number }> {
    const replica = await this.replicaOf(await this.primaryOf(keyOrSlot));
    const start = performance.now();
    const isDone = async () => (await this.primaryOf(keyOrSlot).catch(() => null)) === replica;
    // Redis gives it up after 5 s, which a busy machine may need, and reports that to no client.
    while (!(await isDone())) {
      await replica.admin.cluster("FAILOVER");
      await until(isDone, { timeout: 6_000 }).catch(() => {});
      if (performance.now() - start > PATIENCE) throw new Error("The replica does not take over");
    }
    await this.usable();
    return { took: performance.now() - start };
  }

  /** Starts all ended servers again, empty; those whose place is taken become replicas. */
  async restore(): Promise<void> {
    for (const { server } of this.nodes) {
      if (server.state === "ended") await server.restart();
      server.resume();
    }
    await this.usable();
  }

  /** A move of a slot, before its first step. */
  async startMove(slot: number, to: ClusterNode): Promise<SlotMove> {
    const from = await this.primaryOf(slot);
    const others = (await this.primaries()).filter((node) => node !== from && node !== to);
    return new SlotMove(slot, from, to, others);
  }

  /**
   * Moves a slot with all its keys and waits until every node knows.
   *
   * @param between called, and awaited, between the steps
   */
  async migrateSlot(
    slot: number,
    to: ClusterNode,
    between: (step: MoveStep, move: SlotMove) => unknown = () => {},
  ): Promise<void> {
    const move = await this.startMove(slot, to);
    await move.open();
    await between("opened", move);
    await move.keys();
    await between("moved", move);
    await move.keys(); // keys that came meanwhile
    await move.close();
    await this.usable();
  }

  async stop(): Promise<void> {
    this.#connections.close();
    await Promise.all(this.nodes.map(({ server }) => server.stop()));
  }

  #running(): ClusterNode[] {
    return this.nodes.filter(({ server }) => server.state === "running");
  }

  #anyNode(): ClusterNode {
    const [node] = this.#running();
    if (node === undefined) throw new Error("No node of the Cluster runs");
    return node;
  }

  async #select(wanted: (own: Peer) => boolean): Promise<ClusterNode[]> {
    const running = this.#running();
    const own = await Promise.all(
      running.map(async (node) => (await peersOf(node)).find((peer) => peer.id === node.id)),
    );
    return running.filter((_, index) => own[index] !== undefined && wanted(own[index]));
  }
}
