import type { RedisArgument } from "../api/redis.ts";
import { REPLICA_REST } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import type { LinkedList } from "../util/linked-list.ts";
import { hearProcessEnd, isEnding } from "../util/process-end.ts";
import { queueMicrotask } from "../util/real-timers.ts";
import { slotOf } from "../util/slots.ts";
import type { Call, Callback, CallOwner, Decode } from "./call.ts";
import { type Answer, type Args, ordered, type Procedure, read } from "./codec.ts";
import type { Commands } from "./commands.ts";
import { isReplyError, type Link } from "./driver.ts";
import { Keys } from "./keys.ts";
import { isLate } from "./late.ts";
import { type Script, ScriptKeys } from "./script.ts";
import { Silence } from "./silence.ts";
import { Statement } from "./statement.ts";
import { isOfReplica, QUEUED, Troubles } from "./trouble.ts";
import { tellUnwritten, Unanswered } from "./unanswered.ts";

/**
 * The connection that carries the commands: sends scripts, bounds the time until they are answered,
 * and reports when the connection comes and goes. The connection may be the caller's: only a few
 * listeners are added to it.
 *
 * A Cluster counts as one connection: it finds the node by the first key. ioredis's Cluster resends
 * a command 100 ms after the connection to its node closed, out of order (R1 and R3 make that
 * harmless), and does not say so. So the loss of a node counts as a lost connection.
 */
export class ScriptRunner implements Commands, CallOwner {
  readonly replyTimeout: number;
  readonly keys: Keys;
  readonly isCluster: boolean;
  readonly troubles: Troubles;
  epoch = 0;
  readonly #link: Link;
  readonly #unanswered: Unanswered;
  readonly unanswered: LinkedList<Call>;
  readonly #unhear: () => void;
  /** Scripts that the server of this connection has run, by SHA. */
  readonly #known = new Set<string>();
  /**
   * By how many ms the server's clock is ahead of our monotonic one, from its last reported time;
   * in Cluster per address.
   */
  #ahead = Number.NaN;
  readonly #aheads = new Map<string, number>();
  /** When a connection to a replica was replaced last, on the monotonic clock. */
  #leftReplica = Number.NEGATIVE_INFINITY;
  /** For the client's own connections. */
  readonly #silence: Silence | null;

  onLost: () => void = () => {};
  onReconnect: () => void = () => {};
  onEnd: () => void = () => {};

  /** `prefix`: the client's own, which comes after the `keyPrefix` of the library. */
  constructor(link: Link, replyTimeout: number, prefix = "") {
    hearProcessEnd();
    this.replyTimeout = replyTimeout;
    this.#link = link;
    this.#unanswered = new Unanswered(link, (now) => this.#look(now));
    this.unanswered = this.#unanswered.calls;
    this.isCluster = link.kind === "cluster";
    this.keys = new Keys(link.keyPrefix + prefix, this.isCluster);
    this.#silence = link.isOwn ? new Silence(link, replyTimeout) : null;
    this.troubles = new Troubles(link);
    this.#unhear = link.on({
      lost: (forgotten) => this.#lost(forgotten),
      ready: () => this.#ready(),
      ended: () => this.onEnd(),
    });
  }

  /** Stops reporting. Commands under way are still answered. */
  detach(): void {
    this.#unhear();
    // RACE: the connection may break before those answers, and its next one sends the commands again:
    // what a second copy finds proves no loss.
    this.epoch++;
  }

  get heldUntil(): number {
    return this.#link.heldUntil;
  }

  get isAway(): boolean {
    return this.epoch > 0 && this.#link.state !== "ready";
  }

  get ended(): boolean {
    return this.#link.state === "ended";
  }

  /**
   * Keys for `send` and `run`, without any prefix. Callers that use them repeatedly
   * build them once.
   */
  keysOf(names: readonly string[]): ScriptKeys {
    return new ScriptKeys(this.keys.prefix, names);
  }

  /**
   * Runs a script: EVALSHA, and EVAL if the server does not know it. `callback` receives the
   * driver's reply decoded by `decode`; or the server's or the connection's error, or NoReplyError
   * after `timeout` ms, at most `replyTimeout`.
   */
  send<Answer, Sender extends Callback<Answer>>(
    statement: Statement,
    decode: Decode<Answer, Sender>,
    callback: Sender,
    hold = "",
    number = 0,
    timeout = this.replyTimeout,
  ): void {
    const node = this.#silence ? this.#serverOf(statement.keys) : "";
    const within = Math.min(timeout, this.replyTimeout);
    const { Call } = this.#link;
    const call = new Call(this, statement, hold, number, decode, callback, within, this.epoch, node);
    if (statement.script.isWhole || (isEnding && this.#isNew(statement.script))) call.name = "eval";
    this.#unanswered.calls.add(call);
    if (!this.#unanswered.isSwept) this.#unanswered.sweepSoon();
    this.#silence?.sent(node);
    this.#link.send(call);
    if (isEnding && !isLate) tellUnwritten();
  }

  /**
   * RACE: a process that ends does not read the answer that the server does not know the script. So
   * the first command is sent as text, and later ones find the script there. In Cluster each is
   * sent as text, because each may go to another server.
   */
  #isNew({ sha }: Script): boolean {
    if (this.#known.has(sha)) return false;
    if (!this.isCluster) this.#known.add(sha);
    return true;
  }

  /** As `send`, for rare commands. Rejects with a TypeError if the script sends no such reply. */
  run<P extends Procedure>(
    script: P,
    keys: ScriptKeys | readonly string[],
    args: Args<P>,
    timeout?: number,
  ): Promise<Answer<P["form"]["replies"]>> {
    const decode = (reply: unknown) => read<P["form"]["replies"]>(script.form.replies, reply);
    return this.#ask(script, keys, ordered(script, args), decode, timeout);
  }

  /** As `run`, for a script without a form. Resolves with what the library makes of the reply. */
  runRaw(
    script: Script,
    keys: readonly string[],
    args: readonly RedisArgument[],
    timeout: number,
  ): Promise<unknown> {
    return this.#ask(script, keys, args, (reply) => reply, timeout);
  }

  #ask<T>(
    script: Script,
    keys: ScriptKeys | readonly string[],
    args: readonly RedisArgument[],
    decode: (reply: unknown) => T,
    timeout?: number,
  ): Promise<T> {
    return new Promise((answered, failed) => {
      const made = keys instanceof ScriptKeys ? keys : this.keysOf(keys);
      this.send(new Statement(this, script, made, args), decode, { answered, failed }, "", 0, timeout);
    });
  }

  replied(call: Call, reply: unknown): void {
    this.#silence?.heard(call.node);
    // Already given up: its time is too old to use.
    if (call.isOver) return;
    call.isOver = true;
    this.#unanswered.calls.delete(call);
    if (!this.isCluster) this.#known.add(call.statement.script.sha);
    const { decode, callback } = call;
    try {
      const isText = typeof reply === "string" || Buffer.isBuffer(reply);
      // Checks the length first: the answer of every acquisition is a text.
      if (isText && reply.length === 6 && String(reply) === "QUEUED") callback.failed(new Error(QUEUED));
      else callback.answered(decode(reply, call));
    } catch (error) {
      callback.failed(error);
    }
  }

  /** The library may refuse a command while it is being sent. */
  refused(call: Call, error: unknown): void {
    queueMicrotask(() => this.#refused(call, error));
  }

  #refused(call: Call, error: unknown): void {
    const isUnknown =
      call.name === "evalsha" && error instanceof Error && error.message.startsWith("NOSCRIPT");
    // RACE: a command that was given up must not be executed after the one that takes it back. A
    // command bound to a connection is given up with it, but ioredis may send it again all the
    // same. Another client may have taught the server the script that takes it back, and not this
    // one.
    if (isUnknown && !call.isOver) {
      this.#sendText(call);
      return;
    }
    if (isReplyError(error)) this.#silence?.heard(call.node);
    if (isOfReplica(error)) this.#leaveReplica(call.node);
    if (call.isOver) return;
    call.isOver = true;
    this.#unanswered.calls.delete(call);
    call.callback.failed(this.troubles.explained(error, call.keys));
  }

  /**
   * Another command of the library: its tracers have ended the refused one. A command that was
   * delayed once is not delayed again.
   */
  #sendText(call: Call): void {
    const { statement, hold, number, decode, callback, epoch, node, since, timeout } = call;
    const { Call } = this.#link;
    const again = new Call(this, statement, hold, number, decode, callback, timeout, epoch, node);
    Object.assign(again, { name: "eval", since });
    call.isOver = true;
    this.#unanswered.calls.delete(call);
    this.#unanswered.calls.add(again);
    this.#link.send(again);
  }

  /**
   * A failover made another server the primary, and the address may lead there by now. RACE: not yet,
   * while a DNS name changes: so a connection is replaced once a second at most. Connections of the
   * application are the application's.
   */
  #leaveReplica(node: string): void {
    const now = clocks.mono.now();
    if (!this.#link.isOwn || now - this.#leftReplica < REPLICA_REST) return;
    this.#leftReplica = now;
    this.#link.replace(node);
  }

  /** The server that has this key reported this time, in µs. */
  tellTime(key: string | ScriptKeys, micros: number): void {
    this.#ahead = micros / 1_000 - clocks.mono.now();
    if (this.isCluster) this.#aheads.set(this.#serverOf(key), this.#ahead);
  }

  timeAt(key: string | ScriptKeys): number {
    return (this.isCluster ? this.#aheadOf(key) : this.#ahead) + clocks.mono.now();
  }

  /** Later its caller has given up, after `timeout` ms. */
  notAfter(key: string | ScriptKeys, timeout = this.replyTimeout): number {
    // Every acquire asks: on one server without a call.
    const ahead = this.isCluster ? this.#aheadOf(key) : this.#ahead;
    return Math.ceil(ahead + clocks.mono.now() + Math.min(timeout, this.replyTimeout)) || 0;
  }

  /**
   * In Cluster. RACE: a node is suspended while this client sends it commands for slots that are new
   * to the client, and the process dies. By the last reply of each slot there would be no time to
   * name, and the node would give the locks to a dead process. All slots of a node have its clock. A
   * node that has never answered is assumed to have the others' clock; if that is wrong, it answers
   * "stale" and reports its own.
   */
  #aheadOf(key: string | ScriptKeys): number {
    return this.#aheads.get(this.#serverOf(key)) ?? this.#ahead;
  }

  /** The address of the node that has this key; in Cluster there are several. */
  #serverOf(key: string | ScriptKeys): string {
    if (!this.isCluster) return "";
    const slot = typeof key === "string" ? slotOf(this.keys.prefix + key) : key.slot;
    return slot === null ? "" : (this.#link.nodes?.addressOf(slot) ?? "");
  }

  mayHaveReached(since: number): boolean {
    return this.#link.readyUntil >= since;
  }

  trouble(): Error {
    return this.troubles.error();
  }

  flush(): void {
    this.#link.flush();
  }

  #look(now: number): void {
    this.#unanswered.giveUp(
      ({ since, timeout }) => since + timeout <= now,
      ({ script, timeout }) => this.troubles.noReply(script, timeout),
    );
    this.#silence?.look(now);
  }

  #lost(forgotten: string | null): void {
    this.epoch++;
    this.#known.clear();
    this.onLost();
    this.#silence?.closed();
    // A command that waits for a connection is not lost, and is sent later. A bound command may be
    // answered by another process now.
    this.#unanswered.giveUp(
      ({ script, isWritten }) => script.isBound === true || (forgotten !== null && isWritten),
      ({ script }) => this.troubles.forgotten(script, forgotten),
    );
  }

  #ready(): void {
    for (const sent of this.unanswered) sent.isWritten = true;
    if (this.epoch > 0) this.onReconnect();
  }
}
