import type { ClusterLike, NodeLike, RedisLike } from "../../api/redis.ts";
import { clocks } from "../../util/clock.ts";
import type { LinkEvents } from "../driver.ts";
import { isCluster } from "./connection.ts";

/**
 * The listeners on a connection: one for each event, however many lock clients share it. Node warns
 * of a leak above ten, and that limit belongs to the connection's owner. They are removed with the
 * last client.
 */
export class ConnectionEvents {
  lastError: unknown = null;
  /** It was closed for good, and not reopened. A Cluster that has ended says "close". */
  isOver = false;
  readonly #watchers = new Set<LinkEvents>();
  #isReady = false;
  #isRefused = false;
  #readyUntil = Number.NEGATIVE_INFINITY;
  readonly #connection: RedisLike | ClusterLike;

  constructor(connection: RedisLike | ClusterLike) {
    this.#connection = connection;
  }

  /** Notifies a watcher from now on. */
  add(watcher: LinkEvents): void {
    if (this.#watchers.size === 0) this.#listen();
    this.#watchers.add(watcher);
  }

  #listen(): void {
    const connection = this.#connection;
    this.lastError = null;
    this.isOver = false;
    this.#isRefused = false;
    this.#isReady = connection.status === "ready";
    this.#readyUntil = Number.NEGATIVE_INFINITY;
    connection.on("close", this.#closed);
    connection.on("ready", this.#ready);
    connection.on("end", this.#ended);
    connection.on("error", this.#failed);
    connection.on("connect", this.#connected);
    if (!isCluster(connection)) return;
    connection.on("node error", this.#nodeFailed);
    connection.on("+node", this.#nodeCame);
    for (const node of connection.nodes()) node.on("close", this.#closed);
  }

  /** Stops notifying the watcher. */
  remove(watcher: LinkEvents): void {
    if (!this.#watchers.delete(watcher) || this.#watchers.size > 0) return;
    this.#connection.off("close", this.#closed);
    this.#connection.off("ready", this.#ready);
    this.#connection.off("end", this.#ended);
    this.#connection.off("error", this.#failed);
    this.#connection.off("connect", this.#connected);
    if (!isCluster(this.#connection)) return;
    this.#connection.off("node error", this.#nodeFailed);
    this.#connection.off("+node", this.#nodeCame);
    for (const node of this.#connection.nodes()) node.off("close", this.#closed);
  }

  get readyUntil(): number {
    return this.#connection.status === "ready" ? clocks.mono.now() : this.#readyUntil;
  }

  /**
   * ioredis prints a connection error that has no listener. A caller without a listener must still
   * see it: if ours is the only one, this prints what ioredis would print. `errorMonitor` does not
   * help: without a listener ioredis emits nothing. A connection that is not ioredis would have
   * thrown the error; for it the message names Holdfast.
   */
  readonly #failed = (error: unknown): void => {
    const isClosing = error instanceof Error && /EPIPE|ECONNRESET/.test(error.message);
    if (!this.#isRefused || !isClosing) this.lastError = error;
    if (this.#connection.listenerCount("error") !== 1 || !(error instanceof Error)) return;
    const isIoredis = "silentEmit" in this.#connection || isCluster(this.#connection);
    console.error(`[${isIoredis ? "ioredis" : "holdfast"}] Unhandled error event:`, error.stack);
  };
  /**
   * A server that refuses a connection (`maxclients`, protected mode) says so before it receives a
   * command, and closes. ioredis does not report that, or reports a broken pipe.
   */
  readonly #connected = (): void => {
    const { stream } = this.#connection as { stream?: Pick<NodeJS.ReadableStream, "once"> };
    stream?.once("data", (data: Buffer) => {
      const [refusal] =
        /^-(DENIED|ERR max number of clients)[^\r\n]*/.exec(data.toString("latin1", 0, 1_000)) ?? [];
      if (refusal === undefined) return;
      this.#isRefused = true;
      this.lastError = new Error(refusal.slice(1));
    });
  };
  readonly #nodeFailed = (error: unknown): void => {
    this.lastError = error;
  };
  readonly #closed = (): void => {
    const connection = this.#connection;
    // In a Cluster it may be only one node.
    if (this.#isReady && connection.status !== "ready") {
      this.#readyUntil = clocks.mono.now();
      this.#isReady = false;
    }
    const isForgotten = (isCluster(connection) ? connection.nodes() : [connection]).some(isForgetful);
    for (const watcher of [...this.#watchers]) watcher.lost(isForgotten ? NOT_AGAIN : null);
  };
  readonly #ready = (): void => {
    this.lastError = null;
    this.#isRefused = false;
    this.#isReady = true;
    this.isOver = false;
    this.#usable();
  };
  readonly #usable = (): void => {
    for (const watcher of [...this.#watchers]) watcher.ready();
  };
  readonly #ended = (): void => {
    this.isOver = true;
    for (const watcher of [...this.#watchers]) watcher.ended();
  };
  readonly #nodeCame = (node: NodeLike): void => {
    node.on("close", this.#closed);
    this.isOver = false;
    this.#usable();
  };
}

const NOT_AGAIN = "is not sent again (autoResendUnfulfilledCommands is false)";

/**
 * On a reconnect, ioredis sends unanswered commands again, or drops them silently. Without a
 * reconnect, as by default at a Cluster's nodes, it rejects them; a Cluster then sends them again,
 * whatever this option says.
 */
const isForgetful = ({ options }: RedisLike): boolean =>
  options.autoResendUnfulfilledCommands === false && typeof options.retryStrategy === "function";
