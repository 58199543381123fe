/** What a command carries. */
export type RedisArgument = string | number | Buffer;

type Listener = (first: string, second: string) => void;

type ErrorListener = (error: unknown) => void;

/** What Holdfast needs of any connection, to a server or to a Cluster. */
interface Connection {
  readonly status: string;
  readonly options: { readonly keyPrefix?: string | undefined };
  evalsha(sha: string, numberOfKeys: number, ...args: RedisArgument[]): Promise<unknown>;
  eval(script: string, numberOfKeys: number, ...args: RedisArgument[]): Promise<unknown>;
  callBuffer(command: string, ...args: RedisArgument[]): Promise<unknown>;
  sendCommand(command: object): unknown;
  on(event: string, listener: Listener): unknown;
  on(event: "error" | "node error", listener: ErrorListener): unknown;
  off(event: string, listener: Listener): unknown;
  off(event: "error" | "node error", listener: ErrorListener): unknown;
  listenerCount(event: string): number;
  disconnect(reconnect?: boolean): void;
}

/** What determines where a connection leads, of all options of ioredis. */
export interface Address {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** Of a socket. */
  readonly path?: string | undefined;
  /** Of a Sentinel group. */
  readonly name?: string | undefined;
  readonly sentinels?: readonly Address[] | null | undefined;
}

/**
 * What Holdfast needs of an ioredis connection to a single server or a Sentinel group. Structural,
 * so that two copies of ioredis in one tree, or versions 5 and 6, all fit.
 */
export interface RedisLike extends Connection {
  readonly options: Address & {
    readonly keyPrefix?: string | undefined;
    readonly autoResendUnfulfilledCommands?: boolean | undefined;
    readonly retryStrategy?: unknown;
    readonly tls?: unknown;
  };
  duplicate(override?: object): SubscriberLike;
}

/** What Holdfast needs of the connections that it opens itself. */
export interface SubscriberLike extends RedisLike {
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  sunsubscribe(...channels: string[]): Promise<unknown>;
  wait(replicas: number, timeout: number): Promise<unknown>;
}

/** A connection of a Cluster to one of its nodes. */
export type NodeLike = RedisLike;

/** What Holdfast needs of an ioredis Cluster. */
export interface ClusterLike extends Connection {
  readonly isCluster: boolean;
  /** For each slot the addresses (host:port) that serve it, the primary's first. */
  readonly slots: readonly (readonly string[] | undefined)[];
  nodes(role?: "all" | "master" | "slave"): NodeLike[];
  refreshSlotsCache(done?: (error?: unknown) => void): void;
  on(event: string, listener: Listener): unknown;
  on(event: "error" | "node error", listener: ErrorListener): unknown;
  on(event: "+node", listener: (node: NodeLike) => void): unknown;
  off(event: string, listener: Listener): unknown;
  off(event: "error" | "node error", listener: ErrorListener): unknown;
  off(event: "+node", listener: (node: NodeLike) => void): unknown;
  duplicate(overrideStartupNodes?: never[], overrideOptions?: object): ClusterLike;
}

/**
 * Identifies a client of node-redis 5 or 6: what `createClient`, `createCluster` or
 * `createSentinel` returned. Structural, so that any copy and version of the package fits.
 */
export interface NodeRedisLike {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  sendCommand(...args: never[]): Promise<unknown>;
  sSubscribe(...args: never[]): Promise<unknown>;
}
