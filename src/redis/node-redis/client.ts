// What is used of node-redis 5 and 6. Structural: nothing is imported of the package, so that any
// copy and version in one tree fits, and none is needed.

import { addressName } from "../place-name.ts";

export interface Emitter {
  // biome-ignore lint/suspicious/noExplicitAny: each event has arguments of its own.
  on(event: string, listener: (...args: any[]) => void): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: each event has arguments of its own.
  off(event: string, listener: (...args: any[]) => void): unknown;
  listenerCount(event: string): number;
}

interface SocketOptions {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly tls?: unknown;
  readonly reconnectStrategy?: unknown;
}

export interface ClientOptions {
  readonly url?: string;
  readonly socket?: SocketOptions;
  readonly disableOfflineQueue?: boolean;
}

export interface NodeAddress {
  readonly host?: string;
  readonly port?: number;
}

export type Word = string | Buffer;
type Heard = (message: string, channel: string) => void;

/** `createClient()`: one connection to one server. */
export interface Client extends Emitter {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly options?: ClientOptions | undefined;
  readonly _keyPrefix?: string | undefined;
  connect(): Promise<unknown>;
  destroy(): void;
  unref(): void;
  duplicate(overrides?: object): Client;
  sendCommand(words: readonly Word[], options?: object): Promise<unknown>;
  subscribe(channels: readonly string[], heard: Heard): Promise<unknown>;
  unsubscribe(channels: readonly string[], heard: Heard): Promise<unknown>;
  sSubscribe(channels: readonly string[], heard: Heard): Promise<unknown>;
  sUnsubscribe(channels: readonly string[], heard: Heard): Promise<unknown>;
}

/** What a Cluster knows of one of its servers. */
interface ClusterNode {
  readonly address: string;
  /** Undefined: it was not needed yet, or could not connect. */
  readonly client?: Client | undefined;
}

/** `createCluster()`. */
export interface Cluster extends Emitter {
  readonly isOpen: boolean;
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  readonly masters: readonly ClusterNode[];
  readonly _keyPrefix?: string | undefined;
  readonly _options?: {
    readonly rootNodes?: readonly ClientOptions[];
    readonly nodeAddressMap?:
      | Readonly<Record<string, NodeAddress>>
      | ((address: string) => NodeAddress | undefined);
  };
  nodeClient(node: ClusterNode): Promise<Client>;
}

/** `createSentinel()`. */
export interface Sentinel extends Emitter {
  readonly isOpen: boolean;
  readonly _keyPrefix?: string | undefined;
  getSentinelNode(): { host: string; port: number } | undefined;
  getMasterNode(): { host: string; port: number } | undefined;
  /** All of its commands go through here: it waits until there is a master. */
  _execute<T>(isReadonly: boolean, use: (master: Client) => Promise<T>): Promise<T>;
}

const has = (given: object, ...methods: string[]): boolean =>
  methods.every((method) => typeof (given as Record<string, unknown>)[method] === "function");

export const isClient = (given: object): given is Client =>
  "isReady" in given &&
  "options" in given &&
  has(given, "on", "off", "listenerCount", "connect", "destroy", "unref", "duplicate", "sendCommand") &&
  has(given, "subscribe", "unsubscribe", "sSubscribe", "sUnsubscribe");

export const isCluster = (given: object): given is Cluster =>
  "slots" in given &&
  "masters" in given &&
  "nodeByAddress" in given &&
  has(given, "on", "off", "listenerCount", "nodeClient", "sendCommand");

export const isSentinel = (given: object): given is Sentinel =>
  has(given, "on", "off", "listenerCount", "getSentinelNode", "getMasterNode", "_execute", "sendCommand");

/** `createClientPool()`. */
export const isPool = (given: object): boolean =>
  "totalClients" in given && "idleClients" in given && has(given, "execute", "sendCommand");

/**
 * Options of a command that is answered as the caller's own are. The timeout is the library's own
 * for what it has not written, 5 s by itself: ours counts from when a command was sent, and making
 * an AbortSignal for each one is dear.
 */
export const PLAIN = { timeout: undefined, abortSignal: undefined, asap: false };
/**
 * The same with texts as Buffers, by the RESP types of texts ($ + =): nothing else tells a number
 * from a text. In version 5 `withTypeMapping` has no effect on `sendCommand`.
 */
export const RAW = { ...PLAIN, typeMapping: { 36: Buffer, 43: Buffer, 61: Buffer } };

export const toWord = (word: string | number | Buffer): Word =>
  typeof word === "number" ? String(word) : word;

/**
 * Errors of the server have no name of their own, but a class: ErrorReply, from whatever copy of
 * the package, and classes that inherit from it. Where a bundler has renamed it, they are known by
 * their first word, such as NOSCRIPT, which no error of the library or of Node.js has. They get the
 * name that the interface promises.
 */
export function isReply(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const isOne = hasClass(error, "ErrorReply") || (!("code" in error) && /^[A-Z]{2,}\b/.test(error.message));
  if (isOne) error.name = "ReplyError";
  return isOne;
}

function hasClass(error: object, name: string): boolean {
  for (let kind: object | null = error; kind; kind = Object.getPrototypeOf(kind))
    if (kind.constructor?.name === name) return true;
  return false;
}

const nothing = (): void => {};
const anchored = new WeakSet<object>();

/**
 * Listens to events until the returned function is called.
 *
 * RACE: what `createClient` returns inherits from the client that emits. When the last listener is
 * taken off, Node gives the heir an empty list of its own: listeners that come later, also those of
 * the application, are never called. So one listener, of an event that never comes, stays.
 */
export function listenTo(
  emitter: Emitter,
  // biome-ignore lint/suspicious/noExplicitAny: each event has arguments of its own.
  listeners: Readonly<Record<string, (...args: any[]) => void>>,
): () => void {
  if (!anchored.has(emitter)) emitter.on("holdfast", nothing);
  anchored.add(emitter);
  for (const [event, listener] of Object.entries(listeners)) emitter.on(event, listener);
  return () => {
    for (const [event, listener] of Object.entries(listeners)) emitter.off(event, listener);
  };
}

/** Closes a client of our own. Version 5 throws where it is closed already. */
export function destroy(client: Client): void {
  try {
    client.destroy();
  } catch {
    // It was closed.
  }
}

/** "127.0.0.1:6379", or a socket's path: without user and password. */
export function nameOf({ socket = {}, url }: ClientOptions): string {
  if (socket.path !== undefined) return socket.path;
  // A client takes the address out of its URL; the root node of a Cluster still has it there.
  const from = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  const port = from?.port ? Number(from.port) : undefined;
  return addressName({ host: socket.host ?? from?.hostname, port: socket.port ?? port });
}
