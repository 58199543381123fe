// The parts of node-redis 5 and 6 in use. Structural types: nothing is imported from the package,
// so any copy and version in one tree fits, and none is needed.

import { addressName } from "../place-name.ts";

export interface Emitter {
  /** The emitter that a client inherits from. */
  readonly _self?: Emitter;
  /** Node's own: the number of events that have listeners. */
  readonly _eventsCount?: number;
  // biome-ignore lint/suspicious/noExplicitAny: each event has arguments of its own.
  on(event: string | symbol, listener: (...args: any[]) => void): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: each event has arguments of its own.
  off(event: string | symbol, listener: (...args: any[]) => void): unknown;
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

export interface Credentials {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Of the package's own: called for each connection. Then the other two do not count. */
  readonly credentialsProvider?: unknown;
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
  readonly _clientId?: string;
  /** Another number for each socket. */
  readonly socketEpoch: number;
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

/** A Cluster's record of one of its servers. */
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
    readonly defaults?: Credentials;
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
  /** All of its commands go through this: it waits until there is a master. */
  _execute<T>(isReadonly: boolean, use: (master: Client) => Promise<T>): Promise<T>;
}

const has = (given: object, ...methods: string[]): boolean =>
  methods.every((method) => typeof (given as Record<string, unknown>)[method] === "function");

const METHODS = [
  "on",
  "off",
  "listenerCount",
  "connect",
  "destroy",
  "unref",
  "duplicate",
  "sendCommand",
  "subscribe",
  "unsubscribe",
  "sSubscribe",
  "sUnsubscribe",
];

/** The members used here that it lacks: without one of them it would fail later. */
export const lackedByClient = (given: object): string[] => [
  ...["isReady", "options"].filter((name) => !(name in given)),
  ...METHODS.filter((method) => !has(given, method)),
];

export const isClient = (given: object): given is Client => lackedByClient(given).length === 0;

export const isCluster = (given: object): given is Cluster =>
  "slots" in given &&
  "masters" in given &&
  "nodeByAddress" in given &&
  has(given, "on", "off", "listenerCount", "nodeClient", "sendCommand");

export const isSentinel = (given: object): given is Sentinel =>
  has(given, "on", "off", "listenerCount", "getSentinelNode", "_execute", "sendCommand");

/** `createClientPool()`. */
export const isPool = (given: object): boolean =>
  "totalClients" in given && "idleClients" in given && has(given, "execute", "sendCommand");

/**
 * Options of a command whose replies have the form of replies to the caller's own commands. The
 * timeout is the library's own for commands that it has not written, 5 s by default. Ours counts
 * from when a command was sent, and an AbortSignal per command is expensive.
 */
export const PLAIN = { timeout: undefined, abortSignal: undefined, asap: false };
/**
 * The same with texts as Buffers, by the RESP types of texts ($ + =): only these distinguish a
 * number from a text. In version 5 `withTypeMapping` has no effect on `sendCommand`.
 */
export const RAW = { ...PLAIN, typeMapping: { 36: Buffer, 43: Buffer, 61: Buffer } };

export const toWord = (word: string | number | Buffer): Word =>
  typeof word === "number" ? String(word) : word;

/**
 * Errors of the server have no name of their own, but a class: ErrorReply, from any copy of the
 * package, and subclasses. If a bundler has renamed it, they are recognised by their first word,
 * such as NOSCRIPT, which no error of the library or of Node.js has. They get the name that the
 * interface promises.
 */
export function isReply(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const isOne = hasClass(error, "ErrorReply") || (!("code" in error) && /^[A-Z]{2,}\b/.test(error.message));
  if (isOne) error.name = "ReplyError";
  return isOne;
}

/**
 * Is it the error of a command: of a PING of node-redis's own (`pingInterval`), or of one that the
 * application sent by `legacy()`? While a client is ready, its only other errors are those thrown
 * while it read replies.
 */
export const isOfCommand = (error: unknown): boolean =>
  error instanceof Error &&
  (hasClass(error, "ErrorReply") || hasClass(error, "TimeoutError") || FAILED.test(error.message));

/**
 * Narrower than `isReply`: an error that a listener throws may also begin with a word in capitals.
 */
const FAILED =
  /^((BUSY|ERR|LOADING|MASTERDOWN|NOAUTH|NOPERM) |The command was aborted$|The queue is full$|Command timeout during maintenance|"arguments\[)/;

function hasClass(error: object, name: string): boolean {
  for (let kind: object | null = error; kind; kind = Object.getPrototypeOf(kind))
    if (kind.constructor?.name === name) return true;
  return false;
}

/** Listens to events until the returned function is called. */
export function listenTo(
  emitter: Emitter,
  // biome-ignore lint/suspicious/noExplicitAny: each event has arguments of its own.
  listeners: Readonly<Record<string, (...args: any[]) => void>>,
): () => void {
  const source = emitterOf(emitter);
  for (const [event, listener] of Object.entries(listeners)) {
    const before = source.listenerCount(event);
    emitter.on(event, listener);
    // The application has left it without listeners before: see `takeOff`.
    if (source.listenerCount(event) === before) source.on(event, listener);
  }
  return () => {
    for (const [event, listener] of Object.entries(listeners)) {
      takeOff(emitter, event, listener);
      if (source !== emitter) takeOff(source, event, listener);
    }
  };
}

/** The object that emits the events of this client, or of a copy of it such as `withTypeMapping()`. */
const emitterOf = (emitter: Emitter): Emitter => emitter._self ?? emitter;

/**
 * RACE: the object that `createClient` returns inherits from the client that emits, and so do its
 * copies. They share one list of listeners, but each counts the events in it by itself. When one
 * has counted down to none, Node gives it an empty list of its own: later listeners, also the
 * application's, are never called. So one listener, of an event that never comes, stays.
 */
function takeOff(emitter: Emitter, event: string, listener: () => void): void {
  if (emitter._eventsCount === 1) emitter.on(Symbol("holdfast"), () => {});
  emitter.off(event, listener);
}

/**
 * For an application that does not listen to errors. Without our listener the error would have been
 * thrown, and ended the process.
 */
export function printUnheard(emitter: Emitter, error: unknown): void {
  if (emitterOf(emitter).listenerCount("error") !== 1 || !(error instanceof Error)) return;
  console.error("[holdfast] Unhandled error event:", error.stack);
}

/** Closes a client of our own. Version 5 throws if it is closed already. */
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
  // A client removes the address from its URL; the root node of a Cluster still has it there.
  const from = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  const port = from?.port ? Number(from.port) : undefined;
  return addressName({ host: socket.host ?? from?.hostname, port: socket.port ?? port });
}
