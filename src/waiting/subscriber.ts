import pTimeout from "p-timeout";
import { SELF_TEST_EVERY, SELF_TEST_REPLY } from "../defaults.ts";
import type { RedisLike, SubscriberLike } from "../redis-like.ts";
import type { Commands } from "../scripts/commands.ts";
import { publishProbe } from "../scripts/handoff.ts";
import { probeMessage } from "../scripts/messages.ts";

/** A duplicate must reconnect and resubscribe whatever the caller chose for his own connection. */
const OVERRIDES = {
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  autoResubscribe: true,
  lazyConnect: false,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  keyPrefix: "",
  shardedSubscribers: true,
};

/**
 * The client's one subscriber connection, opened at the first wait.
 *
 * | state | true |
 * |---|---|
 * | closed | no connection; the next `ready()` opens one |
 * | opening | SUBSCRIBE is sent, or the connection was lost and comes back: messages may be missed |
 * | ready | every channel is acknowledged: what is published from now on arrives |
 *
 * It never keeps the process alive, and does not come back for nobody: waiting callers do both.
 */
export class Subscriber {
  readonly channel: string;
  readonly #redis: RedisLike;
  readonly #commands: Commands;
  readonly #wanted: () => boolean;
  readonly #channels = new Map<string, Set<(message: string) => void>>();
  readonly #acknowledged = new Set<string>();
  readonly #pending = new Map<string, Promise<void>>();
  #connection: SubscriberLike | null = null;
  #closed = false;
  #counted = true;
  #probes = 0;
  #heard = 0;
  #tested = Number.NEGATIVE_INFINITY;

  /** Called when messages may have been missed and are heard again. */
  onGap: () => void = () => {};

  /** `wanted`: is anybody waiting? */
  constructor(redis: RedisLike, commands: Commands, channel: string, wanted: () => boolean) {
    this.#redis = redis;
    this.#commands = commands;
    this.channel = channel;
    this.#wanted = wanted;
  }

  /** False: the number of receivers of a PUBLISH proves nothing here (a proxy, an ACL). */
  get counted(): boolean {
    return this.#counted;
  }

  isReady(channel: string): boolean {
    return this.#acknowledged.has(channel);
  }

  /** Hears a channel from the next `ready()` on. Returns how to stop. */
  listen(channel: string, listener: (message: string) => void): () => void {
    const listeners = this.#channels.get(channel) ?? new Set();
    this.#channels.set(channel, listeners);
    listeners.add(listener);
    return () => {
      if (!listeners.delete(listener) || listeners.size > 0) return;
      this.#channels.delete(channel);
      if (this.#acknowledged.delete(channel)) this.#connection?.unsubscribe(channel).catch(() => {});
    };
  }

  /** Resolves when the channel is acknowledged. Rejects when SUBSCRIBE is refused or takes longer than a command may. */
  async ready(channel: string): Promise<void> {
    if (this.isReady(channel)) return;
    const connection = this.#open();
    await pTimeout(this.#once(connection, channel), {
      milliseconds: this.#commands.replyTimeout,
      message: `SUBSCRIBE was not acknowledged within ${this.#commands.replyTimeout} ms`,
    });
  }

  /**
   * Something was missed: is anybody listening at the other end? A half-open connection counts as a receiver for as
   * long as TCP does not notice. What was lost in a reconnect is no deafness, and a rule that reconnects at once feeds
   * itself, so: at most one test in 5 s, and only a message that had a receiver and was not read within 1 s counts.
   */
  async selfTest(): Promise<void> {
    const connection = this.#connection;
    const now = performance.now();
    if (!connection || !this.isReady(this.channel) || now - this.#tested < SELF_TEST_EVERY) return;
    this.#tested = now;
    const number = ++this.#probes;
    const count = await publishProbe(this.#commands, this.channel, probeMessage(number)).catch(() => 0);
    if (count < 1) return;
    await new Promise<void>((resolve) => setTimeout(resolve, SELF_TEST_REPLY).unref());
    if (this.#heard >= number || this.#connection !== connection || this.#closed) return;
    this.#drop();
    this.#open();
  }

  /** The probe may have failed for want of a connection: believe the count again when it can be believed. */
  async recount(): Promise<void> {
    if (!this.#counted && this.isReady(this.channel)) await this.#probe();
  }

  /** Closes the connection it opened. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  /** The client's own channel told that a probe came through. */
  heardProbe(number: number): void {
    this.#heard = Math.max(this.#heard, number);
  }

  #open(): SubscriberLike {
    if (this.#connection) return this.#connection;
    // ioredis asks for a delay when the connection is lost; null: it stays closed until somebody waits again.
    const retryStrategy = (times: number): number | null =>
      this.#wanted() ? Math.min(times * 50, 2_000) : null;
    const connection = this.#redis.duplicate({ ...OVERRIDES, retryStrategy });
    this.#connection = connection;
    connection.on("error", () => {});
    connection.on("message", (channel: string, text: string) => {
      for (const listener of this.#channels.get(channel) ?? []) listener(text);
    });
    connection.on("ready", () => {
      unref(connection);
      void this.#resubscribe(connection);
    });
    // A connection that was replaced closes late: what its successor has acknowledged stays.
    connection.on("close", () => {
      if (this.#connection === connection) this.#acknowledged.clear();
    });
    connection.on("end", () => {
      if (this.#connection === connection) this.#drop();
    });
    return connection;
  }

  /** After every connect: ioredis resubscribes by itself but does not tell when that was acknowledged. */
  async #resubscribe(connection: SubscriberLike): Promise<void> {
    try {
      await this.#acknowledge(connection, [...new Set([this.channel, ...this.#channels.keys()])]);
      if (this.#connection === connection) this.onGap();
    } catch {
      // Whoever waits for `ready()` is told by his own SUBSCRIBE; parked holds live on by their re-checks.
    }
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
    await connection.subscribe(...channels);
    if (this.#connection !== connection) throw new Error("the subscriber connection was replaced");
    if (channels.includes(this.channel) && !this.#acknowledged.has(this.channel)) await this.#probe();
    if (connection.status !== "ready") throw new Error("the subscriber connection was lost again");
    for (const channel of channels) {
      if (this.#channels.has(channel)) this.#acknowledged.add(channel);
      // Its last listener left while SUBSCRIBE was on its way.
      else connection.unsubscribe(channel).catch(() => {});
    }
  }

  /** Is the number of receivers of our own PUBLISH to be believed? It decides whether dead waiters are seen at once. */
  async #probe(): Promise<void> {
    const count = await publishProbe(this.#commands, this.channel, probeMessage(++this.#probes)).catch(
      () => 0,
    );
    this.#counted = count > 0;
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = null;
    this.#acknowledged.clear();
    this.#pending.clear();
    connection?.disconnect();
  }
}

/** The socket of an idle subscriber must not keep a finished program running. */
function unref(connection: SubscriberLike): void {
  const { stream } = connection as { stream?: { unref?(): void } };
  stream?.unref?.();
}
