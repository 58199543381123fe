import type { ClusterLike, RedisArgument, RedisLike } from "../api/redis.ts";
import { clocks } from "../util/clock.ts";
import { hearProcessEnd, isEnding } from "../util/process-end.ts";
import { slotOf } from "../util/slots.ts";
import {
  type Call,
  type Callback,
  type CallClass,
  type CallOwner,
  callClassOf,
  type Decode,
  PlainCall,
  plain,
} from "./call.ts";
import type { Commands } from "./commands.ts";
import { type Watch, watch } from "./connection-events.ts";
import { Keys } from "./keys.ts";
import { isApart } from "./replies.ts";
import { type Script, ScriptKeys, sharded } from "./script.ts";
import { Silence } from "./silence.ts";
import { QUEUED, Troubles } from "./trouble.ts";
import { isCluster, isOwn } from "./types.ts";
import { tellUnwritten, Unanswered } from "./unanswered.ts";
import { corked, heldUntil, isPatient, Writes } from "./writes.ts";

/**
 * The connection that carries the commands: sends scripts, bounds the time until they are answered,
 * and tells when the connection comes and goes. The connection may be the caller's: nothing on it
 * is changed but a few listeners.
 *
 * A Cluster is one such connection too: it finds the node by the first key. It sends a command
 * again 100 ms after the connection to its node closed, out of order (R1 and R3 make that
 * harmless), and does not say so: that a node was lost counts as a lost connection.
 */
export class ScriptRunner implements Commands, CallOwner {
  readonly replyTimeout: number;
  readonly keys: Keys;
  readonly isCluster: boolean;
  readonly writes = new Writes();
  readonly troubles: Troubles;
  epoch = 0;
  readonly #redis: RedisLike | ClusterLike;
  readonly #watch: Watch;
  readonly #Call: CallClass;
  readonly #sent: Set<Call>;
  readonly #unanswered: Unanswered;
  /** Scripts that the server of this connection has run, by SHA. */
  readonly #known = new Set<string>();
  #over = false;
  /**
   * By how many ms the clock of the server that has told its time last is ahead of our monotonic
   * one; in Cluster of each, by address.
   */
  #ahead = Number.NaN;
  readonly #aheads = new Map<string, number>();
  /** Of connections that are ours alone. */
  readonly #silence: Silence | null;

  onLost: () => void = () => {};
  onReconnect: () => void = () => {};
  onEnd: () => void = () => {};

  constructor(redis: RedisLike | ClusterLike, replyTimeout: number) {
    hearProcessEnd();
    this.replyTimeout = replyTimeout;
    this.#redis = redis;
    this.#unanswered = new Unanswered(redis, (now) => this.#look(now));
    this.#sent = this.#unanswered.calls;
    this.isCluster = isCluster(redis);
    this.#Call = callClassOf(redis);
    this.keys = new Keys(redis.options.keyPrefix ?? "", this.isCluster);
    this.#silence = isOwn(redis) ? new Silence(redis, replyTimeout) : null;
    this.#watch = watch(redis, {
      closed: (forgets) => this.#closed(forgets),
      ready: () => this.#ready(),
      ended: () => this.#ended(),
    });
    this.troubles = new Troubles(redis, this.#watch);
  }

  get heldUntil(): number {
    return heldUntil();
  }

  get isAway(): boolean {
    return this.epoch > 0 && this.#redis.status !== "ready";
  }

  get ended(): boolean {
    // A Cluster that has ended says "close".
    return this.#over || this.#redis.status === "end";
  }

  /**
   * Keys for `send` and `run`, without the connection's prefix: made once where they are used again
   * and again.
   */
  keysOf(names: readonly string[]): ScriptKeys {
    return new ScriptKeys(this.keys.prefix, names);
  }

  /**
   * Runs a script: EVALSHA, and EVAL when the server does not know it. `told` is told what `decode`
   * makes of the reply, as it comes from ioredis; or the server's or the connection's error, or
   * NoReplyError after `timeout` ms, at the most `replyTimeout`. `Class`: how it is sent.
   */
  send<Answer>(
    script: Script,
    keys: ScriptKeys,
    args: readonly RedisArgument[],
    decode: Decode<Answer>,
    callback: Callback<Answer>,
    timeout = this.replyTimeout,
    Class = this.#Call,
  ): void {
    if (this.isCluster && !script.isForeign) script = sharded(script);
    const call = new Class(this, script, keys, args, decode, callback, Math.min(timeout, this.replyTimeout));
    call.isWritten = this.#redis.status === "ready";
    if (script.isWhole || (isEnding && this.#isNew(script))) call.name = "eval";
    this.#sent.add(call);
    if (!this.#unanswered.isSwept) this.#unanswered.sweepSoon();
    if (this.#silence) {
      call.node = this.#serverOf(keys);
      this.#silence.sent(call.node);
    }
    const { reject } = call;
    this.#handOver(call);
    if (script.isImpatient && call.reject !== reject) {
      const redirect = call.reject;
      call.reject = (error) => (isApart(error) ? reject : redirect)(error);
    }
    if (this.writes.expected > 0 || corked.length > 0) this.writes.sent();
    if (isEnding && !isPatient) tellUnwritten();
  }

  /**
   * RACE: a process that ends reads no answer which says that the server does not know the script.
   * So the first one goes as text, and those after it find it there; in Cluster each, because each
   * may go to another server.
   */
  #isNew({ sha }: Script): boolean {
    if (this.#known.has(sha)) return false;
    if (!this.isCluster) this.#known.add(sha);
    return true;
  }

  /**
   * As `send`, for what is rare. Resolves with what `decode` makes of the answer, or rejects with
   * what it throws.
   */
  run<T>(
    script: Script,
    keys: ScriptKeys | readonly string[],
    args: readonly RedisArgument[],
    decode: (answer: unknown) => T,
    timeout?: number,
  ): Promise<T> {
    return new Promise((answered, failed) => {
      const Class = script.isForeign || args.some(Buffer.isBuffer) ? PlainCall : this.#Call;
      const made = keys instanceof ScriptKeys ? keys : this.keysOf(keys);
      const read = (reply: unknown): T => decode(script.isForeign ? reply : plain(reply));
      this.send(script, made, args, read, { answered, failed }, timeout, Class);
    });
  }

  /**
   * RACE: a connection that somebody has wrapped throws where it should reject, or rejects a
   * promise that ioredis has not made. The call would have that as its answer, and a second one
   * after `replyTimeout`.
   */
  #handOver(call: Call): void {
    const { promise } = call;
    try {
      if (call instanceof PlainCall) this.#sendPlain(call);
      else {
        const sent = this.#redis.sendCommand(call);
        if (sent instanceof Promise && sent !== promise) sent.catch((error) => this.#thrown(call, error));
      }
    } catch (error) {
      this.#thrown(call, error);
    }
  }

  #thrown(call: Call, error: unknown): void {
    // What the server says is told by the call itself.
    if (!(error instanceof Error && error.name === "ReplyError")) call.reject(error);
  }

  #sendPlain({ script, name, keys, argv, resolve, reject }: Call): void {
    const args = [keys.names.length, ...keys.names, ...argv] as const;
    const text = name === "eval" ? script.lua : script.sha;
    const reply = script.isForeign
      ? this.#redis[name](text, ...args)
      : this.#redis.callBuffer(name, text, ...args);
    // What is no promise is no answer either: this throws.
    reply.then(resolve, reject);
  }

  replied(call: Call, reply: unknown): void {
    this.#silence?.heard(call.node);
    // Given up already: its time is too old to go by.
    if (!this.#sent.delete(call)) return;
    // With one that nothing else is awaited beside, no other reply has come, unless that was counted before.
    if (this.#sent.size > 0 || this.writes.expected > 0) this.writes.replied();
    if (!this.isCluster) this.#known.add(call.script.sha);
    const { decode, callback: told } = call;
    try {
      const isText = typeof reply === "string" || Buffer.isBuffer(reply);
      // By its length first: of every lock that is taken the answer is a text.
      if (isText && reply.length === 6 && String(reply) === "QUEUED") told.failed(new Error(QUEUED));
      else told.answered(decode(reply, call));
    } catch (error) {
      told.failed(error);
    }
  }

  refused(call: Call, error: unknown): void {
    const isUnknown =
      call.name === "evalsha" && error instanceof Error && error.message.startsWith("NOSCRIPT");
    // RACE: a command that was given up must not be executed after the one that takes it back. What
    // is bound to a connection is given up with it; ioredis has sent it again all the same, and
    // another client may have taught the server the script that takes it back, and not this one.
    if (isUnknown && this.#sent.has(call)) {
      call.name = "eval";
      this.#handOver(call);
      return;
    }
    if (error instanceof Error && error.name === "ReplyError") this.#silence?.heard(call.node);
    if (this.#sent.delete(call)) call.callback.failed(this.troubles.explained(error));
  }

  /** The server that has this key said that its time was so many µs. */
  tellTime(key: string | ScriptKeys, micros: number): void {
    this.#ahead = micros / 1_000 - clocks.mono.now();
    if (this.isCluster) this.#aheads.set(this.#serverOf(key), this.#ahead);
  }

  /**
   * A decoder that also takes the time, in µs, of the server where this clock stands from an answer
   * that tells it.
   */
  timed<T extends object>(clock: string, decode: (reply: unknown) => T): (reply: unknown) => T {
    return (reply) => {
      const answer: T & { readonly at?: number } = decode(reply);
      if (answer.at !== undefined) this.tellTime(clock, answer.at);
      return answer;
    };
  }

  /**
   * Until when, in the server's time in ms, a command that is sent now may be executed: later its
   * caller has given up, after `timeout` ms. A little early rather than late; 0: no server has told
   * its time yet.
   *
   * RACE: a node stands still while this client sends it commands for slots that are new to it, and
   * the process dies. By the slot's own last reply there would be no time to name, and the node
   * would give the locks to a dead process. All slots of a node have its clock. A node that has
   * never answered is taken to have the clock of the others: where that is wrong, it answers
   * "stale" and tells its own.
   */
  notAfter(key: string | ScriptKeys, timeout = this.replyTimeout): number {
    const ahead = (this.isCluster ? this.#aheads.get(this.#serverOf(key)) : undefined) ?? this.#ahead;
    return Math.ceil(ahead + clocks.mono.now() + Math.min(timeout, this.replyTimeout)) || 0;
  }

  /** The address of the node that has this key; in Cluster there are several. */
  #serverOf(key: string | ScriptKeys): string {
    if (!this.isCluster) return "";
    const slot = typeof key === "string" ? slotOf(this.keys.prefix + key) : key.slot;
    return (slot === null ? undefined : (this.#redis as ClusterLike).slots[slot]?.[0]) ?? "";
  }

  mayHaveReached(since: number): boolean {
    return this.#watch.readyUntil >= since;
  }

  trouble(): Error {
    return this.troubles.error();
  }

  /** Tells of the connection no more. Commands that are on their way are still answered. */
  detach(): void {
    this.#watch.stop();
  }

  #look(now: number): void {
    this.#unanswered.giveUp(
      (sent) => sent.until <= now,
      ({ script, since, until }) => this.troubles.noReply(script, until - since),
    );
    this.#silence?.look(now);
  }

  #closed(forgets: boolean): void {
    this.epoch++;
    this.#known.clear();
    this.onLost();
    this.#silence?.closed();
    // Of what was written no answer comes any more where ioredis sends nothing again, and it does
    // not say so. What waits in its offline queue is not lost, and is sent later. What is bound may
    // be answered by another process now.
    this.#unanswered.giveUp(
      ({ script, isWritten }) => script.isBound === true || (forgets && isWritten),
      ({ script }) => this.troubles.forgotten(script),
    );
  }

  #ready(): void {
    this.#over = false;
    for (const sent of this.#sent) sent.isWritten = true;
    if (this.epoch > 0) this.onReconnect();
  }

  #ended(): void {
    this.#over = true;
    this.onEnd();
  }
}
