import { LockError } from "../api/errors.ts";
import { UNANSWERED } from "../defaults.ts";
import { duration } from "../util/duration.ts";
import { quoteAll } from "../util/quote.ts";
import { isReplyError, type Link, type Place } from "./driver.ts";
import type { Script, ScriptKeys } from "./script.ts";

/** Describes a connection that carries commands when one of them has failed. */
export class Troubles {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  get whereabouts(): string {
    return whereabouts(this.#link);
  }

  get lastError(): Error | undefined {
    const { lastError } = this.#link;
    return lastError instanceof Error ? lastError : undefined;
  }

  /** Why no command gets through or is answered now. */
  error(): Error {
    const at = redisAt(this.#link);
    const state = this.#state;
    if (this.#isReady) return this.#because(`${at} has not answered${state}; ${this.#silence}`);
    const isOver = this.#link.state === "ended";
    return this.#because(
      isOver
        ? `the connection to ${at} was closed for good${state}`
        : `there is no connection to ${at}${state}`,
    );
  }

  /**
   * A command's error. The library says little if the connection is the cause, and Redis if a right
   * is missing.
   */
  explained(error: unknown, { full: keys }: Pick<ScriptKeys, "full">): unknown {
    if (!(error instanceof Error)) return error;
    const said = error.message.replace(/\.$/, "");
    const at = redisAt(this.#link);
    if (!isReplyError(error))
      return this.#because(
        `${said} (${at}, ${stateOf(this.#link, this.#link.lastError)})`,
        this.lastError ?? error,
      );
    if (this.#link.kind !== "cluster" && IN_CLUSTER.test(error.message))
      error.message = `${NODE_OF_CLUSTER} (${said})`;
    else if (isAboutConnection(error)) error.message = `${said} (${at}, ${stateOf(this.#link, null)})`;
    if (NO_KEY.test(error.message)) error.message = `${said}: the keys are ${quoteAll(keys)}`;
    if (isOfReplica(error)) error.message = `${at} ${REPLICA}${this.#wayBack} (${said})`;
    if (FULL.test(error.message))
      error.message = `Redis is full (maxmemory) and refuses to write: raise maxmemory, or free memory (${said})`;
    return error;
  }

  /** The script was not answered within `ms`. */
  noReply({ name }: Script, ms: number): Error {
    const text = `${redisAt(this.#link)} did not answer within ${duration(ms)}${this.#state}`;
    const isShort = !this.#isReady || Math.round(ms) < UNANSWERED;
    return new NoReplyError(isShort ? text : `${text}; ${this.#silence}`, name, this.lastError);
  }

  /**
   * Why a command that was sent on a lost connection gets no answer. `forgotten`: see `LinkEvents`.
   */
  forgotten({ name, isBound }: Script, forgotten: string | null): Error {
    const then = isBound ? "counts on that connection only" : forgotten;
    const text = `the connection to ${redisAt(this.#link)} was lost before the command was answered, which ${then}`;
    return new NoReplyError(text, name, this.lastError);
  }

  get #isReady(): boolean {
    return this.#link.state === "ready";
  }

  /** How a connection leaves a server that became a replica while the connection stayed. */
  get #wayBack(): string {
    const { isOwn, library } = this.#link;
    if (isOwn) return "; the client connects again";
    return library === "ioredis"
      ? '; after a failover ioredis stays there, unless it has the option reconnectOnError: ({ message }) => message.includes("READONLY")'
      : "; after a failover node-redis stays there, until you destroy() this client and connect() it again";
  }

  /** In brackets, unless it is simply connected. */
  get #state(): string {
    const { lastError } = this.#link;
    return this.#isReady && lastError === null ? "" : ` (${stateOf(this.#link, lastError)})`;
  }

  /** Why an existing connection may not answer. */
  get #silence(): string {
    const { kind, library } = this.#link;
    return `${kind === "cluster" ? repeated(library) : ""}it is slow or unreachable${ADVICE}`;
  }

  #because(text: string, cause: unknown = this.lastError): Error {
    return new Error(text, cause === undefined ? undefined : { cause });
  }
}

/** For programmers: left out of operators' messages. */
const ADVICE = ', or a command such as BLPOP blocks the connection: then use { connection: "own" }';

/** Why locks could not be listed, for operators: which server does not answer, without options. */
export function operatorsReason(error: unknown): string {
  const why = error instanceof LockError ? (error.cause ?? error) : error;
  return (why instanceof Error ? why.message : String(why)).replace(ADVICE, "");
}

/** As messages name it: "Redis at 127.0.0.1:6379", "Redis Cluster of 10.0.0.1:6379, 10.0.0.2:6379". */
export const redisAt = ({ kind, name }: Link): string => `Redis ${kind === "server" ? "at " : ""}${name}`;

/** How messages name a place. */
export type Seen = Pick<Place, "name" | "status" | "isTls" | "lastError">;

/** Where a connection leads, its state, and its last error, as far as known. */
export const whereabouts = (place: Seen): string => `${place.name}, ${stateOf(place, place.lastError)}`;

function stateOf({ status, isTls }: Seen, lastError: unknown): string {
  const state = `status ${status}`;
  if (lastError !== null) return `${state}: ${explain(lastError)}`;
  // A non-TLS port waits for the rest of what it takes for a command.
  const isUnsure = status === "connecting" && isTls;
  return isUnsure ? `${state}: no end of the TLS handshake; does the server speak TLS on this port?` : state;
}

/** A connection's error in one line, with advice if the library and Node give none. */
export function explain(error: unknown): string {
  const text = textOf(error);
  const hint = HINTS.find(([pattern]) => pattern.test(text))?.[1];
  return hint ? `${text}; ${hint}` : text;
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, errors, lastNodeError } = error as Error & Record<string, unknown>;
  // "localhost" has two addresses, and the combined error has no text of its own.
  const inner = Array.isArray(errors) && errors.length > 0 ? errors.map(textOf).join(", ") : "";
  const text = error.message || inner || String(code ?? error.name);
  const line = text.replace(/\s+/g, " ").trim().replace(/\.$/, "");
  const short = line.length > 200 ? `${line.slice(0, 199)}…` : line;
  return lastNodeError instanceof Error ? `${short}: ${textOf(lastNodeError)}` : short;
}

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^NOPERM|user executing the script can't/, "give this user the rights in docs/operating.md (rights)"],
  [/^(WRONGPASS|NOAUTH)/, "give the connection's options the current user and password"],
  [/max number of clients/, "raise maxclients, or see what opens so many connections (CLIENT LIST)"],
  [
    /ETIMEDOUT|acknowledge SUBSCRIBE|handshake was not answered/,
    "does a firewall or proxy drop new connections?",
  ],
  [/server closes it/, "see its log, and client-output-buffer-limit pubsub"],
  [/cluster support disabled/, "this server is no Cluster: connect to it as to a single server"],
  [
    /EPIPE|ECONNRESET/,
    "the server closed it: is it full (maxclients), in protected mode, does it want TLS, or is it a proxy without EVALSHA, INFO or SUBSCRIBE?",
  ],
  [
    /wrong version number|EPROTO|before secure TLS|packet length too long/i,
    "the server does not speak TLS on this port: leave out the tls option, or use its TLS port",
  ],
  [
    /^Socket timeout timeout/,
    "with its default reconnectStrategy node-redis closes a client for good after socketTimeout of silence: leave out socketTimeout",
  ],
];

/** Is this answer of Redis about the connection, and not about the command? */
const isAboutConnection = (error: Error): boolean =>
  /^(NOAUTH|WRONGPASS|DENIED|LOADING|MASTERDOWN|CLUSTERDOWN|ERR (max number of clients|AUTH |invalid password|Client sent AUTH|This instance has cluster))/.test(
    error.message,
  );

/** Replies of a node of a Cluster, whose client library has to find the right node. */
const IN_CLUSTER = /^(CROSSSLOT|MOVED|ASK|TRYAGAIN|CLUSTERDOWN) /;
const NODE_OF_CLUSTER =
  "the server is a node of a Cluster: connect with new Cluster(…) of ioredis, createCluster(…) of node-redis, or --cluster on the command line";

/** The user has no right to a key of the command. Redis does not say to which. */
const NO_KEY = /^NOPERM .*\baccess (a key|one of the keys)\b/i;

/** Of a server that takes no writes. */
export const REPLICA = "is a replica, which takes no writes: connect to the primary";
/** Redis 6.2 puts the script's place before the code. */
export const isOfReplica = (error: unknown): boolean =>
  isReplyError(error) && /(^|-)READONLY /.test(error.message);

/** A script is refused for lack of memory. Redis 6.2 puts its place before the code. */
const FULL = /(^|-)OOM /;

/** No reply came in time, or none will. The command may have been executed, or may still be. */
class NoReplyError extends Error {
  override readonly name = "NoReplyError";

  /** `script`: the unanswered one. */
  constructor(
    message: string,
    readonly script: string,
    cause: Error | undefined,
  ) {
    super(message, cause && { cause });
  }
}

const repeated = (library: string): string =>
  `either the Cluster refuses it (CLUSTERDOWN, TRYAGAIN), which ${library} keeps to itself and tries again, or `;

export const QUEUED =
  'the connection is inside MULTI, so the command was queued and not executed: use pipelined MULTI, or { connection: "own" }';
