import { type ClusterLike, isCluster, type NodeLike, type RedisLike } from "../redis-like.ts";

/** Is told when a connection comes and goes. */
interface Watcher {
  /** It was lost, or a try to get it back has failed. `forgets`: what it carried is neither sent again nor refused. */
  closed(forgets: boolean): void;
  /** It is there, perhaps again; of a Cluster, a node is. */
  ready(): void;
  /** It was closed for good. */
  ended(): void;
}

const links = new WeakMap<RedisLike | ClusterLike, Link>();

/** Tells a watcher of a connection from now on. Returns how to stop. */
export function watch(connection: RedisLike | ClusterLike, watcher: Watcher): () => void {
  const link = links.get(connection) ?? new Link(connection);
  links.set(connection, link);
  link.watchers.add(watcher);
  return () => {
    if (!link.watchers.delete(watcher) || link.watchers.size > 0) return;
    link.detach();
    links.delete(connection);
  };
}

/**
 * The listeners on a connection: one for each event, however many lock clients share it. Node warns of a leak when there
 * are more than ten, and that limit belongs to whose connection it is. They go with the last client.
 */
class Link {
  readonly watchers = new Set<Watcher>();
  readonly #connection: RedisLike | ClusterLike;

  constructor(connection: RedisLike | ClusterLike) {
    this.#connection = connection;
    connection.on("close", this.#closed);
    connection.on("ready", this.#ready);
    connection.on("end", this.#ended);
    if (!isCluster(connection)) return;
    connection.on("+node", this.#nodeCame);
    for (const node of connection.nodes()) node.on("close", this.#closed);
  }

  detach(): void {
    this.#connection.off("close", this.#closed);
    this.#connection.off("ready", this.#ready);
    this.#connection.off("end", this.#ended);
    if (!isCluster(this.#connection)) return;
    this.#connection.off("+node", this.#nodeCame);
    for (const node of this.#connection.nodes()) node.off("close", this.#closed);
  }

  readonly #closed = (): void => {
    const connection = this.#connection;
    const forgets = (isCluster(connection) ? connection.nodes() : [connection]).some(isForgetful);
    for (const watcher of [...this.watchers]) watcher.closed(forgets);
  };
  readonly #ready = (): void => {
    for (const watcher of [...this.watchers]) watcher.ready();
  };
  readonly #ended = (): void => {
    for (const watcher of [...this.watchers]) watcher.ended();
  };
  readonly #nodeCame = (node: NodeLike): void => {
    node.on("close", this.#closed);
    this.#ready();
  };
}

/**
 * When it reconnects, ioredis sends what was not answered once more, or drops it without a word. When it does not, as the
 * nodes of a Cluster do by default, it refuses that; and a Cluster then sends it again, whatever this option says.
 */
const isForgetful = ({ options }: RedisLike): boolean =>
  options.autoResendUnfulfilledCommands === false && typeof options.retryStrategy === "function";
