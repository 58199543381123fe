import pTimeout, { TimeoutError } from "p-timeout";
import { RECHECK_SPREAD, RETRY_MAX, RETRY_MIN, SELF_TEST_EVERY, SELF_TEST_REPLY } from "../defaults.ts";
import { outside } from "../util/outside.ts";
import { doubling, newNonce } from "../util/random.ts";
import { probeMessage } from "./messages.ts";
import { publishProbe } from "./probe.ts";
import type { ScriptRunner } from "./script-runner.ts";
import type { Audience, Subscriptions } from "./subscriptions.ts";
import { type RedisLike, type SubscriberLike, unref } from "./types.ts";

/** A duplicate must reconnect whatever the caller chose for his own connection. Who resubscribes is this class. */
const OVERRIDES = {
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  autoResendUnfulfilledCommands: true,
  autoResubscribe: false,
  lazyConnect: false,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  keyPrefix: "",
  readOnly: false,
};

/** Channels in one SUBSCRIBE. */
const BLOCK = 1_000;

/** Where a subscriber connects to, and how it subscribes there. */
export interface Source extends Audience {
  /** The connection to duplicate. */
  readonly redis: RedisLike;
  /** Channels of a Cluster belong to slots: SSUBSCRIBE, one for each, because they share no slot. */
  readonly isSharded: boolean;
  /** A channel is not heard here any more: the connection was lost, or the slot has moved. */
  onStray?(): void;
}

/**
 * A subscriber connection, opened at the first wait. In Cluster there is one for each node.
 *
 * | state | true |
 * |---|---|
 * | closed | no connection; the next `ready()` opens one |
 * | opening | SUBSCRIBE is sent, or the connection was lost and comes back: messages may be missed |
 * | ready | every channel is acknowledged: what is published from now on arrives |
 *
 * It never keeps the process alive, and does not come back for nobody: waiting callers do both.
 */
export class Subscriber implements Subscriptions {
  readonly #source: Source;
  readonly #commands: ScriptRunner;
  readonly #channels = new Map<string, Set<(message: string) => void>>();
  readonly #acknowledged = new Set<string>();
  readonly #pending = new Map<string, Promise<void>>();
  #connection: SubscriberLike | null = null;
  #closed = false;
  #counted = true;
  /** The own channel whose acknowledgement was followed by a probe; null before that. */
  #probed: string | null = null;
  /** The message of the self-test that is under way, until it is read: no other one proves that anything is heard. */
  #awaited: string | null = null;
  #tested = Number.NEGATIVE_INFINITY;
  /** How often all that was acknowledged has been forgotten. */
  #forgotten = 0;
  #isMoving = false;

  onGap: () => void = () => {};

  constructor(source: Source, commands: ScriptRunner) {
    this.#source = source;
    this.#commands = commands;
  }

  isCounted(): boolean {
    return this.#counted;
  }

  isReady(channel: string): boolean {
    return this.#acknowledged.has(channel);
  }

  get isIdle(): boolean {
    return this.#channels.size === 0;
  }

  listen(channel: string, listener: (message: string) => void): () => void {
    const listeners = this.#channels.get(channel) ?? new Set();
    this.#channels.set(channel, listeners);
    listeners.add(listener);
    return () => {
      if (!listeners.delete(listener) || listeners.size > 0) return;
      this.#channels.delete(channel);
      if (this.#acknowledged.delete(channel)) this.#unsubscribe(this.#connection, channel);
    };
  }

  async ready(channel: string): Promise<void> {
    if (this.isReady(channel)) return;
    const connection = this.#open();
    await this.#inTime(this.#once(connection, channel));
  }

  /**
   * A half-open connection counts as a receiver for as long as TCP does not notice. What was lost in a reconnect is no
   * deafness, and a rule that reconnects at once feeds itself, so: at most one test in 5 s, and a message must not be
   * read within 1 s.
   *
   * RACE 7: where messages to this client were counted and are not any more, the server has dropped the connection and
   * told nobody, or it is one to a server that was replaced. It is heard there perhaps, but skipped by every grant.
   */
  async selfTest(channel: string): Promise<void> {
    const connection = this.#connection;
    const now = performance.now();
    if (!connection || !this.isReady(channel) || now - this.#tested < SELF_TEST_EVERY) return;
    this.#tested = now;
    const message = probeMessage(newNonce());
    this.#awaited = message;
    const count = await publishProbe(this.#commands, channel, message).catch(() => null);
    if (count === null) return;
    const isLost = count === 0 && this.#counted;
    if (!isLost) await new Promise<void>((resolve) => setTimeout(resolve, SELF_TEST_REPLY).unref());
    if ((!isLost && this.#awaited !== message) || this.#connection !== connection || this.#closed) return;
    this.#replace();
    this.#source.onStray?.();
  }

  /** The probe may have failed for want of a connection. */
  async recount(): Promise<void> {
    if (!this.#counted && this.#probed !== null) await this.#probe(this.#probed);
  }

  close(): void {
    this.#closed = true;
    this.#drop();
  }

  #open(): SubscriberLike {
    if (this.#connection) return this.#connection;
    // ioredis asks for a delay when the connection is lost; null: it stays closed until somebody waits again.
    const retryStrategy = (times: number): number | null =>
      this.#source.isWanted() ? Math.min(times * 50, 2_000) : null;
    const connection = outside(() => this.#source.redis.duplicate({ ...OVERRIDES, retryStrategy }));
    this.#connection = connection;
    // ioredis 5 tells of a slot that went away only by being confused.
    connection.on("error", (error) => {
      if (String(error).includes("Command queue state error")) this.#moved(connection);
    });
    connection.on(this.#source.isSharded ? "smessage" : "message", (channel: string, text: string) => {
      if (text === this.#awaited) this.#awaited = null;
      else for (const listener of this.#channels.get(channel) ?? []) listener(text);
    });
    connection.on("moved", () => this.#moved(connection));
    connection.on("ready", () => {
      unref(connection);
      void this.#resubscribe(connection);
    });
    // A connection that was replaced closes late: what its successor has acknowledged stays.
    connection.on("close", () => {
      if (this.#connection !== connection) return;
      this.#forget();
      this.#source.onStray?.();
    });
    connection.on("end", () => {
      if (this.#connection === connection) this.#drop();
    });
    return connection;
  }

  /**
   * Slots went to another node, one message for each channel; which ones is not told. What was acknowledged counts no
   * more, once for all of them. ioredis says the same when a SUBSCRIBE of ours is refused. RACE 8: nobody can tell that
   * from slots that went while a SUBSCRIBE was on its way, so it counts as those; looking for the channels is paced.
   */
  #moved(connection: SubscriberLike): void {
    if (this.#connection !== connection || this.#isMoving) return;
    this.#isMoving = true;
    setImmediate(() => {
      this.#isMoving = false;
      if (this.#connection !== connection) return;
      if (!this.#source.isWanted()) {
        this.#drop();
        return;
      }
      this.#forget();
      this.#source.onStray?.();
    });
  }

  /** After every connect: ioredis could do it but would not tell when that was acknowledged. */
  async #resubscribe(connection: SubscriberLike, failures = 0): Promise<void> {
    const channels = [...this.#channels.keys()].filter((channel) => !this.isReady(channel));
    if (channels.length === 0) return;
    // In blocks: a call with more than some 100 000 arguments overflows the stack.
    const length = this.#source.isSharded ? 1 : BLOCK;
    const groups = Array.from({ length: Math.ceil(channels.length / length) }, (_, i) =>
      channels.slice(i * length, (i + 1) * length),
    );
    // A caller of `ready()` is told by its own SUBSCRIBE; parked holds live on by their re-checks.
    const results = await Promise.allSettled(groups.map((group) => this.#acknowledge(connection, group)));
    if (this.#connection !== connection) return;
    if (results.some(({ status }) => status === "fulfilled")) this.onGap();
    if (!results.some(({ status }) => status === "rejected")) return;
    this.#source.onStray?.();
    // While it is away, its next connect does it. What was heard before, and is refused on a live one, would stay unheard by
    // those who wait; what was never heard is tried by its callers.
    if (this.#source.isSharded || connection.status !== "ready" || this.#forgotten === 0) return;
    setTimeout(
      () => {
        const isMine = this.#connection === connection && connection.status === "ready" && !this.#closed;
        if (isMine && this.#source.isWanted()) void this.#resubscribe(connection, failures + 1);
      },
      doubling(failures, RETRY_MIN, RETRY_MAX, RECHECK_SPREAD),
    ).unref();
  }

  /** One SUBSCRIBE for a channel, however many callers begin to wait at the same time. */
  #once(connection: SubscriberLike, channel: string): Promise<void> {
    const pending = this.#pending.get(channel);
    if (pending) return pending;
    const work = this.#acknowledge(connection, [channel]).finally(() => {
      if (this.#pending.get(channel) === work) this.#pending.delete(channel);
    });
    this.#pending.set(channel, work);
    return work;
  }

  async #acknowledge(connection: SubscriberLike, channels: readonly string[]): Promise<void> {
    const forgotten = this.#forgotten;
    const isSent = connection.status === "ready";
    try {
      const reply = this.#source.isSharded
        ? connection.ssubscribe(...channels)
        : connection.subscribe(...channels);
      await (isSent ? this.#inTime(reply) : reply);
    } catch (error) {
      // Half open: TCP would notice in a quarter of an hour. While it connects, ioredis looks after it; and what it was
      // told of since then is dealt with.
      const isSilent = this.#connection === connection && this.#forgotten === forgotten;
      if (error instanceof TimeoutError && isSilent) this.#replace();
      throw error;
    }
    if (this.#connection !== connection) throw new Error("the subscriber connection was replaced");
    const own = this.#probed === null ? channels.find((channel) => this.#source.isOwn(channel)) : undefined;
    if (own !== undefined) await this.#probe(own);
    if (connection.status !== "ready" || this.#forgotten !== forgotten)
      throw new Error("the subscriber connection was lost again, or the slot has moved");
    for (const channel of channels) {
      if (this.#channels.has(channel)) this.#acknowledged.add(channel);
      // Its last listener left while SUBSCRIBE was on its way.
      else this.#unsubscribe(connection, channel);
    }
  }

  async #inTime(acknowledged: Promise<unknown>): Promise<void> {
    const { replyTimeout } = this.#commands;
    await pTimeout(acknowledged, {
      milliseconds: replyTimeout,
      message: `SUBSCRIBE was not acknowledged within ${replyTimeout} ms`,
    });
  }

  #unsubscribe(connection: SubscriberLike | null, channel: string): void {
    const done = this.#source.isSharded
      ? connection?.sunsubscribe(channel)
      : connection?.unsubscribe(channel);
    done?.catch(() => {});
  }

  /** Is the number of receivers of our own PUBLISH to be believed? It decides whether dead waiters are seen at once. */
  async #probe(channel: string): Promise<void> {
    const count = await publishProbe(this.#commands, channel, probeMessage(newNonce())).catch(() => 0);
    this.#counted = count > 0;
    this.#probed = channel;
  }

  #forget(): void {
    this.#forgotten++;
    this.#acknowledged.clear();
    this.#probed = null;
    // ioredis 5 leaves a SUBSCRIBE that was refused for a slot that has moved without an answer.
    this.#pending.clear();
  }

  #replace(): void {
    this.#drop();
    if (this.#source.isWanted()) this.#open();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = null;
    this.#forget();
    connection?.disconnect();
  }
}
