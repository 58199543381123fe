import type { ClusterLike, RedisArgument, RedisLike } from "../../api/redis.ts";
import { detached } from "../../util/detached.ts";
import { Call, type CallClass } from "../call.ts";
import {
  type Driver,
  isReplyError,
  type Link,
  type LinkEvents,
  type Listener,
  type ListenerEvents,
  type Nodes,
  type Place,
} from "../driver.ts";
import { isApart } from "../replies.ts";
import { type Command, commandClassOf } from "./command.ts";
import { isCluster, isConnection, neverKeepAlive, ownerOf } from "./connection.ts";
import { ConnectionEvents } from "./connection-events.ts";
import { currentOptions, follow, followNodes, type Options, remember } from "./current-options.ts";
import { readable } from "./errors.ts";
import { IoredisListener } from "./listener.ts";
import { nameOf } from "./name.ts";
import { corked, heldUntil, Writes, writeNow } from "./writes.ts";

/** Lock clients on the same connection share its link, so it gets no listeners per client. */
const links = new WeakMap<object, Link>();

/** ioredis, any copy and version. */
export const ioredis: Driver = (given) => {
  if (!isConnection(given)) return null;
  const link = links.get(given) ?? new IoredisLink(given, false);
  links.set(given, link);
  return link;
};

/**
 * A command that is sent again on another connection would make WAIT lie, so unanswered commands
 * fail at once. It does not reconnect: a node that is gone would be called forever.
 */
const ONCE = {
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  autoResendUnfulfilledCommands: false,
  lazyConnect: false,
  readOnly: false,
  commandTimeout: undefined,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
};

/** Where an ioredis connection leads. */
class IoredisPlace implements Place {
  readonly isTls: boolean;
  /** Those with which a copy of the connection connects now. */
  readonly #options: () => Options;

  /** `cluster`: the Cluster that the node belongs to. */
  constructor(
    protected readonly redis: RedisLike | ClusterLike,
    readonly address: string,
    readonly keyPrefix: string,
    cluster: ClusterLike | null = null,
  ) {
    this.#options = () => currentOptions(redis as RedisLike, cluster);
    this.isTls = !isCluster(redis) && Boolean(redis.options.tls);
  }

  get name(): string {
    return nameOf(this.redis);
  }

  get status(): string {
    return this.redis.status;
  }

  get lastError(): unknown {
    return null;
  }

  async command([name, ...words]: readonly RedisArgument[]): Promise<unknown> {
    try {
      return await this.redis.callBuffer(String(name), ...words);
    } catch (error) {
      throw readable(error);
    }
  }

  listen(isSharded: boolean, events: ListenerEvents): Listener {
    return new IoredisListener(this.redis as RedisLike, isSharded, events, this.#options);
  }

  openOnce(): Link {
    const options = { ...this.#options(), ...ONCE, keyPrefix: this.keyPrefix };
    const connection = detached(() => (this.redis as RedisLike).duplicate(options));
    connection.on("error", () => {});
    neverKeepAlive(connection);
    return new IoredisLink(connection, false);
  }
}

/** An ioredis connection that carries scripts. */
class IoredisLink extends IoredisPlace implements Link {
  readonly library = "ioredis";
  readonly kind: Link["kind"];
  readonly nodes: Nodes | null = null;
  readonly opensOnce = true;
  readonly isOwn: boolean;
  readonly #writes = new Writes();
  readonly #events: ConnectionEvents;
  /** `Call` itself: `callBuffer` carries the scripts. */
  Call: CallClass = Call;

  constructor(redis: RedisLike | ClusterLike, isOwn: boolean) {
    super(redis, "", redis.options.keyPrefix ?? "");
    this.isOwn = isOwn;
    this.#events = new ConnectionEvents(redis);
    if (isCluster(redis)) {
      this.kind = "cluster";
      this.nodes = new ClusterNodes(redis);
    } else this.kind = redis.options.sentinels ? "sentinel" : "server";
  }

  get state(): Link["state"] {
    const { status } = this.redis;
    if (status === "ready") return "ready";
    return status === "end" || this.#events.isOver ? "ended" : "away";
  }

  override get lastError(): unknown {
    return readable(this.#events.lastError);
  }

  get readyUntil(): number {
    return this.#events.readyUntil;
  }

  get heldUntil(): number {
    return heldUntil();
  }

  on(watcher: LinkEvents): () => void {
    this.Call = commandClassOf(this.redis) ?? Call;
    this.#events.add(watcher);
    return () => this.#events.remove(watcher);
  }

  /**
   * RACE: a connection that the application has wrapped may throw instead of rejecting, or reject a
   * promise that ioredis has not made. The call would get that as its answer, and a second one
   * after `replyTimeout`.
   */
  send(call: Call): void {
    call.isWritten = this.redis.status === "ready";
    if (this.Call === Call || !call.statement.isText) this.#sendPlain(call);
    else {
      const command = call as Command;
      const { promise } = command;
      command.writes = this.#writes;
      // Only where it is needed: it makes a function.
      const reject = call.statement.script.isImpatient ? command.reject : null;
      try {
        const sent = this.redis.sendCommand(command);
        if (sent !== promise && sent instanceof Promise) sent.catch((error) => thrown(command, error));
      } catch (error) {
        thrown(command, error);
      }
      // A Cluster resends refused commands for 1.6 s, with a function of its own.
      if (reject && command.reject !== reject) {
        const redirect = command.reject;
        command.reject = (error) => (isApart(error) ? reject : redirect)(error);
      }
    }
    if (!call.isLate && (this.#writes.expected > 0 || corked.length > 0)) this.#writes.sent();
  }

  #sendPlain(call: Call): void {
    const { owner, script, name, keys, argv } = call;
    const text = name === "eval" ? script.lua : script.sha;
    // ioredis puts its own prefix before these keys again.
    const own = keys.full.map((key) => key.slice(this.keyPrefix.length));
    const words = [own.length, ...own, ...argv] as const;
    try {
      const reply = script.isForeign
        ? this.redis[name](text, ...words)
        : this.redis.callBuffer(name, text, ...words);
      // A result that is no promise is no answer either: this throws.
      reply.then(
        (answer) => owner.replied(call, answer),
        (error: unknown) => owner.refused(call, readable(error)),
      );
    } catch (error) {
      if (!isReplyError(error)) owner.refused(call, readable(error));
    }
  }

  /** ioredis finds the key by itself. */
  commandOn(
    key: string,
    before: readonly RedisArgument[],
    after: readonly RedisArgument[],
  ): Promise<unknown> {
    return this.command([...before, key, ...after]);
  }

  flush(): void {
    writeNow();
  }

  get holdsBack(): boolean {
    const connections = isCluster(this.redis) ? this.redis.nodes() : [this.redis];
    return connections.some((one) => holdsBack((one as { stream?: Stream }).stream));
  }

  replace(address: string): boolean {
    const { redis } = this;
    const connection = isCluster(redis)
      ? redis.nodes().find(({ options }) => `${options.host}:${options.port}` === address)
      : redis;
    const { stream } = (connection ?? {}) as { stream?: { destroy?(error: Error): void } };
    // An orderly end would wait for the other side.
    const why = new Error("Redis was silent for too long, so the connection is replaced");
    // Its next socket belongs to no caller.
    detached(() => stream?.destroy?.(why));
    return stream?.destroy !== undefined;
  }

  open(): Link {
    const { redis } = this;
    const options = { lazyConnect: false, enableOfflineQueue: true };
    const copy = detached(() => (isCluster(redis) ? redis.duplicate([], options) : redis.duplicate(options)));
    if (isCluster(copy)) followNodes(copy, redis as ClusterLike);
    else follow(copy, options, () => redis.options as Options);
    // ioredis prints errors without a listener; commands report them, with the lock concerned.
    copy.on("error", () => {});
    return new IoredisLink(copy, true);
  }

  close(): void {
    this.redis.disconnect();
  }
}

/** The command itself reports the server's answer. */
function thrown(command: Command, error: unknown): void {
  if (!isReplyError(error)) command.reject(error);
}

/** ioredis's map of a Cluster. */
class ClusterNodes implements Nodes {
  readonly #cluster: ClusterLike;
  readonly #keyPrefix: string;

  constructor(cluster: ClusterLike) {
    remember(cluster);
    this.#cluster = cluster;
    this.#keyPrefix = cluster.options.keyPrefix ?? "";
  }

  addressOf(slot: number): string {
    return this.#cluster.slots[slot]?.[0] ?? "";
  }

  placeOf(slot: number): Place | null {
    const owner = ownerOf(this.#cluster, slot);
    return owner && new IoredisPlace(owner.node, owner.address, this.#keyPrefix, this.#cluster);
  }

  primaries(): readonly Place[] {
    return this.#cluster.nodes("master").map((node) => {
      const { host, port } = node.options;
      return new IoredisPlace(node, `${host}:${port}`, this.#keyPrefix, this.#cluster);
    });
  }

  refresh(done?: (error?: unknown) => void): void {
    // It may connect to further nodes.
    detached(() => this.#cluster.refreshSlotsCache(done));
  }
}

/** The fields of a socket that show whether it has taken all that was written. */
interface Stream {
  readonly writableLength?: number;
  /** Of TLS only. */
  readonly encrypted?: boolean;
  readonly writableBuffer?: readonly unknown[];
}

/**
 * Does it hold data for a turn of the event loop that will not come? Over TLS the data written last
 * counts as pending until then, and only data after it is held back.
 */
function holdsBack(stream: Stream | undefined): boolean {
  if (!stream?.writableLength) return false;
  return !stream.encrypted || stream.writableBuffer?.length !== 0;
}
