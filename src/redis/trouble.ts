import type { Address, ClusterLike, RedisLike } from "../api/redis.ts";
import { UNANSWERED } from "../defaults.ts";
import { duration } from "../util/duration.ts";
import type { Script } from "./script.ts";
import { isCluster } from "./types.ts";

/** What can be said of a connection that carries commands, when one of them has failed. */
export class Troubles {
  readonly #redis: RedisLike | ClusterLike;
  readonly #watch: { readonly lastError: unknown };

  constructor(redis: RedisLike | ClusterLike, watch: { readonly lastError: unknown }) {
    this.#redis = redis;
    this.#watch = watch;
  }

  get whereabouts(): string {
    return whereabouts(this.#redis, this.#watch.lastError);
  }

  get lastError(): Error | undefined {
    const { lastError } = this.#watch;
    return lastError instanceof Error ? withoutCommand(lastError) : undefined;
  }

  /** Why no command gets through now, or none is answered. */
  error(): Error {
    const at = redisAt(this.#redis);
    const state = this.#state;
    if (this.#isReady) return this.#because(`${at} has not answered${state}; ${this.#silence}`);
    const isOver = this.#redis.status === "end";
    return this.#because(
      isOver
        ? `the connection to ${at} was closed for good${state}`
        : `there is no connection to ${at}${state}`,
    );
  }

  /** What a command failed with. ioredis says little where that is the connection's fault. */
  explained(error: unknown): unknown {
    if (!(error instanceof Error)) return error;
    const known = withoutCommand(error);
    const isGivenUp = error.name === "MaxRetriesPerRequestError";
    const said = isGivenUp
      ? "ioredis gave up after maxRetriesPerRequest tries"
      : known.message.replace(/\.$/, "");
    const at = redisAt(this.#redis);
    if (error.name !== "ReplyError")
      return this.#because(
        `${said} (${at}, ${stateOf(this.#redis, this.#watch.lastError)})`,
        this.lastError ?? known,
      );
    if (isAboutConnection(known)) known.message = `${said} (${at}, ${stateOf(this.#redis, null)})`;
    return known;
  }

  /** The script was not answered for so many ms. */
  noReply({ name }: Script, ms: number): Error {
    const text = `${redisAt(this.#redis)} did not answer within ${duration(ms)}${this.#state}`;
    const isShort = !this.#isReady || Math.round(ms) < UNANSWERED;
    return new NoReplyError(isShort ? text : `${text}; ${this.#silence}`, name, this.lastError);
  }

  /** Why a command that was sent on a connection that is lost gets no answer any more. */
  forgotten({ name, isBound }: Script): Error {
    const then = isBound
      ? "counts on that connection only"
      : "is not sent again (autoResendUnfulfilledCommands is false)";
    const text = `the connection to ${redisAt(this.#redis)} was lost before the command was answered, which ${then}`;
    return new NoReplyError(text, name, this.lastError);
  }

  get #isReady(): boolean {
    return this.#redis.status === "ready";
  }

  /** In brackets, where there is more to say than that it is connected. */
  get #state(): string {
    const { lastError } = this.#watch;
    return this.#isReady && lastError === null ? "" : ` (${stateOf(this.#redis, lastError)})`;
  }

  /** Why a connection that is there may not answer. */
  get #silence(): string {
    return `${isCluster(this.#redis) ? REPEATED : ""}it is slow or unreachable, or a command such as BLPOP blocks the connection: then use { connection: "own" }`;
  }

  #because(text: string, cause: unknown = this.lastError): Error {
    return new Error(text, cause === undefined ? undefined : { cause });
  }
}

/** As messages name it: "Redis at 127.0.0.1:6379", "Redis Cluster of 10.0.0.1:6379, 10.0.0.2:6379". */
export function redisAt(connection: RedisLike | ClusterLike): string {
  const isGroup = isCluster(connection) || connection.options.sentinels;
  return `Redis ${isGroup ? "" : "at "}${placeOf(connection)}`;
}

/** Where a connection leads, its state, and what went wrong with it; null: nothing that is known. */
export function whereabouts(connection: RedisLike | ClusterLike, lastError: unknown): string {
  return `${placeOf(connection)}, ${stateOf(connection, lastError)}`;
}

function stateOf(connection: RedisLike | ClusterLike, lastError: unknown): string {
  const state = `status ${connection.status}`;
  if (lastError !== null) return `${state}: ${explain(lastError)}`;
  // A plain port waits for the end of what it takes for a command.
  const isUnsure = connection.status === "connecting" && !isCluster(connection) && connection.options.tls;
  return isUnsure ? `${state}: no end of the TLS handshake; does the server speak TLS on this port?` : state;
}

/**
 * Where a connection leads: "127.0.0.1:6379", a socket's path, a Sentinel group, a Cluster's nodes.
 * No user, no password.
 */
export function placeOf(connection: RedisLike | ClusterLike): string {
  if (isCluster(connection)) {
    const { startupNodes } = connection as { startupNodes?: readonly unknown[] };
    const known = connection.nodes("all").map(({ options }) => address(options));
    const places = known.length > 0 ? known : (startupNodes ?? []).map(startupNode);
    return `Cluster of ${few(places)}`;
  }
  const { options } = connection;
  if (!options.sentinels) return address(options);
  return `Sentinel group ${options.name ?? ""} of ${few(options.sentinels.map(address))}`;
}

function address({ host = "localhost", port = 6379, path }: Address): string {
  return path ?? `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** A node that a Cluster was given: as an address, a port or a URL, which may have a password. */
function startupNode(node: unknown): string {
  if (typeof node === "object" && node !== null) return address(node as Address);
  const text = String(node);
  if (!URL.canParse(text)) return /^\d+$/.test(text) ? `localhost:${text}` : "an address";
  const { hostname, port } = new URL(text);
  return `${hostname}:${port || 6379}`;
}

const few = (places: readonly string[]): string =>
  places.length > 3 ? `${places.slice(0, 3).join(", ")} and ${places.length - 3} more` : places.join(", ");

/** What an error of a connection says, in a line, and what to do where ioredis and Node do not say it. */
function explain(error: unknown): string {
  const text = textOf(error);
  const hint = HINTS.find(([pattern]) => pattern.test(text))?.[1];
  return hint ? `${text}; ${hint}` : text;
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, errors, lastNodeError } = error as Error & Record<string, unknown>;
  // "localhost" has two addresses, and the error of both has no text of its own.
  const inner = Array.isArray(errors) && errors.length > 0 ? errors.map(textOf).join(", ") : "";
  const text = error.message || inner || String(code ?? error.name);
  const line = text.replace(/\s+/g, " ").trim().replace(/\.$/, "");
  const short = line.length > 200 ? `${line.slice(0, 199)}…` : line;
  return lastNodeError instanceof Error ? `${short}: ${textOf(lastNodeError)}` : short;
}

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/cluster support disabled/, "this server is no Cluster: connect with new Redis(…)"],
  [
    /EPIPE|ECONNRESET/,
    "the server closed it: is it full (maxclients), in protected mode, or does it want TLS?",
  ],
  [
    /wrong version number|EPROTO|before secure TLS|packet length too long/i,
    "the server does not speak TLS on this port: leave out the tls option, or use its TLS port",
  ],
];

/**
 * An error without the command that ioredis puts into it: the arguments of that are a password
 * where AUTH was refused, and holds where a script was, and printing the error would print them. A
 * copy, as several calls can share one error.
 */
export function withoutCommand(error: Error): Error {
  if (!("command" in error)) return error;
  const { command: _, ...properties } = Object.getOwnPropertyDescriptors(error) as PropertyDescriptorMap;
  const { message, stack } = error;
  return Object.create(Object.getPrototypeOf(error), {
    ...properties,
    message: { value: message, writable: true, configurable: true },
    stack: { value: stack, writable: true, configurable: true },
  });
}

/** Does this answer of Redis tell about the connection, and not about the command? */
const isAboutConnection = (error: Error): boolean =>
  /^(NOAUTH|WRONGPASS|DENIED|LOADING|MASTERDOWN|CLUSTERDOWN|ERR (max number of clients|AUTH |invalid password|Client sent AUTH|This instance has cluster))/.test(
    error.message,
  );

/** No reply came in time, or none will. The command may have been executed, or may be yet. */
class NoReplyError extends Error {
  override readonly name = "NoReplyError";

  /** `script`: the one that was not answered. */
  constructor(
    message: string,
    readonly script: string,
    cause: Error | undefined,
  ) {
    super(message, cause && { cause });
  }
}

const REPEATED =
  "either the Cluster refuses it (CLUSTERDOWN, TRYAGAIN), which ioredis keeps to itself and tries again, or ";

export const QUEUED =
  'the connection is inside MULTI, so the command was queued and not executed: use pipelined MULTI, or { connection: "own" }';
