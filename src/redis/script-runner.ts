import { UNANSWERED } from "../defaults.ts";
import { Keys } from "../keys.ts";
import { outside } from "../util/outside.ts";
import { type Watch, watch } from "./connection-events.ts";
import { ServerTimes } from "./server-times.ts";
import { sharded } from "./sharded.ts";
import { Silence } from "./silence.ts";
import { slotOf } from "./slots.ts";
import type { Transport } from "./transport.ts";
import { isAboutConnection, whereabouts, withoutCommand } from "./trouble.ts";
import { type ClusterLike, isCluster, isOwn, type RedisArgument, type RedisLike } from "./types.ts";

/** A script as tools/build/embed-lua.mjs makes it. */
export interface Script {
  readonly name: string;
  readonly sha: string;
  readonly lua: string;
  /** Somebody else's text: runs as it is, in Cluster too. */
  readonly isForeign?: true;
  /** Its answer counts only on the connection that it was sent on: it is given up when that is lost. */
  readonly isBound?: true;
}

/** No reply came in time, or none will. The command may have been executed, or may be yet. */
class NoReplyError extends Error {
  override readonly name = "NoReplyError";

  constructor(message: string, cause: Error | undefined) {
    super(message, cause && { cause });
  }
}

interface Sent {
  readonly until: number;
  readonly since: number;
  readonly script: Script;
  /** It is not in the offline queue: the server may have it. */
  isWritten: boolean;
  give(error: Error): void;
}

/** How often unanswered commands are looked at. A timer and an error object for every command would cost 14 µs each. */
const SWEEP = 50;

/**
 * The connection that carries the commands: sends scripts, bounds the time until they are answered, and tells when the
 * connection comes and goes. The connection may be the caller's: nothing on it is changed but a few listeners.
 *
 * A Cluster is one such connection too: it finds the node by the first key. It sends a command again 100 ms after the
 * connection to its node closed, out of order (R1 and R3 make that harmless), and does not say so: that a node was lost
 * counts as a lost connection.
 */
export class ScriptRunner implements Transport {
  readonly replyTimeout: number;
  readonly keys: Keys;
  readonly isCluster: boolean;
  readonly #redis: RedisLike | ClusterLike;
  readonly #watch: Watch;
  readonly #sent = new Set<Sent>();
  /** One timer for the client's life, set again by `refresh()`: making and unref'ing one costs more than a command. */
  #sweeper: NodeJS.Timeout | undefined;
  #isSweeping = false;
  #over = false;
  #epoch = 0;
  readonly #times = new ServerTimes();
  /** Of connections that are ours alone. */
  readonly #silence: Silence | null;

  onReconnect: () => void = () => {};
  onEnd: () => void = () => {};

  constructor(redis: RedisLike | ClusterLike, replyTimeout: number) {
    this.replyTimeout = replyTimeout;
    this.#redis = redis;
    this.isCluster = isCluster(redis);
    this.keys = new Keys(redis.options.keyPrefix ?? "", this.isCluster);
    this.#silence = isOwn(redis) ? new Silence(redis, replyTimeout) : null;
    this.#watch = watch(redis, {
      closed: (forgets) => this.#closed(forgets),
      ready: () => this.#ready(),
      ended: () => this.#ended(),
    });
  }

  get epoch(): number {
    return this.#epoch;
  }

  get isAway(): boolean {
    return this.#epoch > 0 && this.#redis.status !== "ready";
  }

  get ended(): boolean {
    // A Cluster that has ended says "close".
    return this.#over || this.#redis.status === "end";
  }

  /**
   * Runs a script: EVALSHA, and EVAL when the server does not know it.
   *
   * @throws the server's or the connection's error, what `decode` throws, or NoReplyError after `timeout` ms, at the
   *   most `replyTimeout`.
   */
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly RedisArgument[],
    decode: (reply: unknown) => T,
    timeout = this.replyTimeout,
  ): Promise<T> {
    if (this.isCluster && !script.isForeign) script = sharded(script);
    return new Promise((resolve, reject) => {
      // Sent first: Redis works while the rest of this is done.
      const reply = this.#redis.evalsha(script.sha, keys.length, ...keys, ...args);
      const since = performance.now();
      const until = since + Math.min(timeout, this.replyTimeout);
      const sent: Sent = { until, since, script, isWritten: this.#redis.status === "ready", give: reject };
      this.#sent.add(sent);
      if (!this.#isSweeping) this.#sweepSoon();
      const node = this.#silence ? this.#serverOf(keys[0]) : "";
      this.#silence?.sent(node);
      const answered = (reply: unknown): void => {
        this.#silence?.heard(node);
        // Given up already: its time is too old to go by.
        if (!this.#sent.delete(sent)) return;
        if (reply === "QUEUED") reject(new Error(QUEUED));
        else
          try {
            resolve(decode(reply));
          } catch (error) {
            reject(error);
          }
      };
      const failed = (error: unknown): void => {
        if (error instanceof Error && error.name === "ReplyError") this.#silence?.heard(node);
        this.#sent.delete(sent);
        reject(this.#explained(error));
      };
      reply.then(answered, (error: unknown) => {
        const isUnknown = error instanceof Error && error.message.startsWith("NOSCRIPT");
        // RACE: a command that was given up must not be executed after the one that takes it back. What is bound to a
        // connection is given up with it; ioredis has sent it again all the same, and another client may have taught the
        // server the script that takes it back, and not this one.
        if (!isUnknown || !this.#sent.has(sent)) failed(error);
        else this.#evaluate(script, keys, args).then(answered, failed);
      });
    });
  }

  async #evaluate(
    { lua }: Script,
    keys: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<unknown> {
    return this.#redis.eval(lua, keys.length, ...keys, ...args);
  }

  /** A decoder that also takes the time, in µs, of the server where this clock stands from an answer that tells it. */
  timed<T extends object>(clock: string, decode: (reply: unknown) => T): (reply: unknown) => T {
    return (reply) => {
      const answer: T & { readonly at?: number } = decode(reply);
      if (answer.at !== undefined) this.#times.tell(this.#serverOf(clock), answer.at);
      return answer;
    };
  }

  /** See `ServerTimes`. `timeout`: when the caller of the command gives up, in ms. */
  notAfter(clock: string, timeout = this.replyTimeout): number {
    return this.#times.notAfter(this.#serverOf(clock), Math.min(timeout, this.replyTimeout));
  }

  /** The address of the node that has this key; in Cluster there are several. */
  #serverOf(key: string | undefined): string {
    if (!isCluster(this.#redis) || key === undefined) return "";
    return this.#redis.slots[slotOf(this.keys.prefix + key)]?.[0] ?? "";
  }

  mayHaveReached(since: number): boolean {
    return this.#watch.readyUntil >= since;
  }

  trouble(): Error {
    const { status } = this.#redis;
    if (status !== "ready") return this.#error("no connection to Redis");
    return this.#error("Redis has not answered", `. ${this.isCluster ? REPEATED : ""}${BLOCKED}`);
  }

  get whereabouts(): string {
    return whereabouts(this.#redis, this.#watch.lastError);
  }

  get lastError(): Error | undefined {
    const { lastError } = this.#watch;
    return lastError instanceof Error ? withoutCommand(lastError) : undefined;
  }

  #error(what: string, then = "", cause: unknown = this.lastError): Error {
    return new Error(`${what} (${this.whereabouts})${then}`, cause === undefined ? undefined : { cause });
  }

  /** What a command failed with. ioredis says little where that is the connection's fault. */
  #explained(error: unknown): unknown {
    if (!(error instanceof Error)) return error;
    const known = withoutCommand(error);
    if (error.name !== "ReplyError") return this.#error(error.message, "", this.lastError ?? known);
    if (isAboutConnection(known)) known.message = `${known.message} (${whereabouts(this.#redis, null)})`;
    return known;
  }

  /** Tells of the connection no more. ScriptRunner that are on their way are still answered. */
  detach(): void {
    this.#watch.stop();
  }

  readonly #sweep = (): void => {
    const now = performance.now();
    this.#isSweeping = false;
    this.#giveUp(
      (sent) => sent.until <= now,
      (sent) => this.#noReply(sent, now),
    );
    this.#silence?.look(now);
    if (this.#sent.size > 0) this.#sweepSoon();
  };

  #giveUp(isLost: (sent: Sent) => boolean, why: (sent: Sent) => Error): void {
    for (const sent of this.#sent) {
      if (!isLost(sent)) continue;
      this.#sent.delete(sent);
      sent.give(why(sent));
    }
  }

  #sweepSoon(): void {
    this.#isSweeping = true;
    // Set again it takes the context of this call, as it did when it was made.
    outside(() => {
      if (this.#sweeper) this.#sweeper.refresh();
      // Behind the replies that came while this process stood still: they are not late, we are.
      else this.#sweeper = setTimeout(() => setImmediate(this.#sweep), SWEEP).unref();
    });
  }

  #noReply(sent: Sent, now: number): Error {
    const text = `no reply to ${sent.script.name} within ${Math.round(now - sent.since)} ms (${this.whereabouts})`;
    const cause = this.lastError;
    if (this.#redis.status !== "ready" || now - sent.since < UNANSWERED) return new NoReplyError(text, cause);
    return new NoReplyError(`${text}. ${this.isCluster ? REPEATED : ""}${BLOCKED}`, cause);
  }

  #closed(forgets: boolean): void {
    this.#epoch++;
    this.#silence?.closed();
    // Of what was written no answer comes any more where ioredis sends nothing again, and it does not say so. What waits in
    // its offline queue is not lost, and is sent later. What is bound may be answered by another process now.
    this.#giveUp(
      ({ script, isWritten }) => script.isBound === true || (forgets && isWritten),
      ({ script }) =>
        new NoReplyError(`${script.name} ${script.isBound ? BOUND : FORGOTTEN}`, this.lastError),
    );
  }

  #ready(): void {
    this.#over = false;
    for (const sent of this.#sent) sent.isWritten = true;
    if (this.#epoch > 0) this.onReconnect();
  }

  #ended(): void {
    this.#over = true;
    this.onEnd();
  }
}

const FORGOTTEN =
  "was not answered before the connection was lost, and is not sent again (autoResendUnfulfilledCommands is false)";
const BOUND = "was not answered before the connection was lost, and counts on that connection only";
const REPEATED =
  "Either the Cluster refuses it (CLUSTERDOWN, TRYAGAIN), which ioredis keeps to itself and tries again, or ";
const BLOCKED =
  "Redis is slow or unreachable, or the connection is blocked by a command such as BLPOP: give the lock client a " +
  'connection of its own with { connection: "own" }';
const QUEUED =
  "the connection is inside MULTI, so the command was queued and not executed: use pipelined MULTI, or give the lock " +
  'client a connection of its own with { connection: "own" }';
