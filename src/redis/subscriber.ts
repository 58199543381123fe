import pTimeout, { TimeoutError } from "p-timeout";
import { RECHECK_SPREAD, RETRY_MAX, RETRY_MIN, SELF_TEST_EVERY, SELF_TEST_REPLY } from "../defaults.ts";
import { clientTimer } from "../util/client-timer.ts";
import { clocks } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { doubling, newNonce } from "../util/random.ts";
import { idleTimers as customTimers, setImmediate, setTimeout } from "../util/real-timers.ts";
import { Channel, type Listener } from "./channel.ts";
import { Deafness } from "./deafness.ts";
import type { Listener as Connection, Place } from "./driver.ts";
import { isNews } from "./keys.ts";
import { probeMessage, publishProbe } from "./messages.ts";
import type { ScriptRunner } from "./script-runner.ts";
import type { Audience, Subscriptions } from "./transport.ts";

const BLOCK = 1_000; // channels in one SUBSCRIBE

/** Where a subscriber connects to, and how it subscribes there. */
export interface Source extends Audience {
  readonly place: Place;
  /** Channels of a Cluster belong to slots: SSUBSCRIBE, one for each, because they share no slot. */
  readonly isSharded: boolean;
  /** A channel is no longer subscribed here: the connection was lost, or the slot has moved. */
  onStray?(): void;
}

/**
 * A subscriber connection, opened at the first call that may wait. In Cluster there is one for each node.
 *
 * | state | true | leaves it by |
 * |---|---|---|
 * | closed | no connection | `ready()` → opening |
 * | opening | no connection yet, or it was lost and comes back: nothing is subscribed, messages may be missed | connected → SUBSCRIBE for every channel, ready · given up, or replaced → closed |
 * | ready | a channel is subscribed from its acknowledgement on; a further one gets a SUBSCRIBE of its own | lost → opening · replaced → closed |
 *
 * SUBSCRIBE is sent on an open connection, once for each channel: a client's first call that may
 * wait costs one. An acknowledgement wakes only callers that may have missed messages.
 *
 * It never keeps the process alive, and reconnects only while it is needed: waiting callers keep the
 * process alive, and need it.
 */
export class Subscriber implements Subscriptions {
  readonly #source: Source;
  readonly #commands: ScriptRunner;
  readonly #channels = new Map<string, Channel>();
  /**
   * The channel of the last message: most clients have one, and V8 would hash the name in each
   * message.
   */
  #latest: { readonly name: string; readonly channel: Channel } | null = null;
  #connection: Connection | null = null;
  #closed = false;
  #counted = true;
  /** The own channel whose acknowledgement was followed by a probe; null before that. */
  #probed: string | null = null;
  /**
   * The message of the self-test under way, until it is read: no other message proves that any is
   * received.
   */
  #awaited: string | null = null;
  #tested = Number.NEGATIVE_INFINITY;
  /** How often all acknowledgements were forgotten. */
  #forgotten = 0;
  #isMoving = false;
  #later: NodeJS.Timeout | undefined;
  readonly #deafness: Deafness;
  /** When it began to connect, on the monotonic clock. */
  #opened = 0;
  #failures = 0;

  onGap: () => void = () => {};

  constructor(source: Source, commands: ScriptRunner) {
    this.#source = source;
    this.#commands = commands;
    this.#deafness = new Deafness(source.place, commands, source.deaf);
  }

  deafness(): readonly string[] {
    const { reason } = this.#deafness;
    return reason === null ? [] : [`${this.#source.place.name}: ${reason}`];
  }

  isCounted(): boolean {
    return this.#counted;
  }

  isReady(channel: string): boolean {
    return this.#channels.get(channel)?.state === "heard";
  }

  get isIdle(): boolean {
    return this.#channels.size === 0;
  }

  listen(name: string, listener: Listener): () => void {
    const channel = this.#channel(name);
    channel.listeners.add(listener);
    return () => {
      if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
      this.#delete(name);
      if (channel.state === "heard") this.#connection?.unsubscribe(name);
      channel.lost(new Error("no caller listens to the channel any more"));
    };
  }

  async ready(name: string): Promise<void> {
    const connection = this.#open();
    const channel = this.#channel(name);
    if (channel.state === "heard") return;
    const heard = channel.wait();
    // While it connects, its "ready" does it.
    if (channel.state === "unheard" && connection.isReady) void this.#subscribe(connection, [name]);
    try {
      await this.#inTime(heard);
    } catch (error) {
      channel.isMissed = true;
      if (error instanceof TimeoutError && !connection.isReady) this.#stuck(connection, error);
      throw error;
    }
  }

  /**
   * It was not ready in time: a firewall may drop what it sends, or the other end answers no
   * handshake. RACE: another try began meanwhile, and has its own time.
   */
  #stuck(connection: Connection, error: Error): void {
    const took = clocks.mono.now() - this.#opened;
    if (this.#connection !== connection || took < this.#commands.replyTimeout) return;
    this.#failed(error, took);
    this.#replace();
  }

  #channel(name: string): Channel {
    const channel = this.#channels.get(name) ?? new Channel();
    this.#channels.set(name, channel);
    return channel;
  }

  #received(name: string, text: string): void {
    if (this.#latest?.name !== name) {
      const channel = this.#channels.get(name);
      if (!channel) return;
      this.#latest = { name, channel };
    }
    for (const listener of this.#latest.channel.listeners) listener(text);
  }

  #delete(name: string): void {
    this.#channels.delete(name);
    this.#latest = null;
  }

  /**
   * A half-open connection counts as a receiver until TCP notices. A message lost in a reconnect is
   * no deafness, and a rule that reconnects at once feeds itself. So there is at most one test in
   * 5 s, and the connection is deaf if the test's message is not read within 1 s.
   *
   * RACE: when Redis counted this client as a receiver and no longer does, the server has dropped
   * the connection silently, or the connection leads to a server that was replaced. There it may
   * still receive messages, but every grant skips it.
   */
  async selfTest(channel: string): Promise<void> {
    const connection = this.#connection;
    const now = clocks.mono.now();
    if (!connection || !this.isReady(channel) || now - this.#tested < SELF_TEST_EVERY) return;
    this.#tested = now;
    const message = probeMessage(newNonce());
    this.#awaited = message;
    const count = await publishProbe(this.#commands, channel, message).catch(() => null);
    if (count === null) return;
    const isLost = count === 0 && this.#counted;
    if (!isLost) await new Promise<void>((resolve) => setTimeout(resolve, SELF_TEST_REPLY).unref());
    if ((!isLost && this.#awaited !== message) || this.#connection !== connection || this.#closed) return;
    this.#failed(
      new Error(isLost ? "Redis no longer counts it as a receiver" : "messages no longer arrive on it"),
    );
    this.#replace();
    this.#source.onStray?.();
  }

  /**
   * The earlier probe may have failed for want of a connection. RACE: commands lead to another server
   * now, after a failover, and this connection to the old one, whose messages no longer count.
   */
  async recount(): Promise<void> {
    if (this.#probed === null) return;
    await (this.#counted ? this.selfTest(this.#probed) : this.#probe(this.#probed));
  }

  close(): void {
    this.#closed = true;
    this.#drop();
  }

  #open(): Connection {
    if (this.#connection) return this.#connection;
    const { place, isSharded } = this.#source;
    // A replaced connection closes late: its successor's acknowledgements stay valid.
    const isCurrent = (): boolean => this.#connection === connection;
    const connection: Connection = place.listen(isSharded, {
      // Otherwise it stays closed until a caller waits again.
      isWanted: () => this.#source.isWanted(),
      ready: () => this.#subscribeAll(connection),
      message: (channel, text) => {
        if (text === this.#awaited) this.#awaited = null;
        else this.#received(channel, text);
      },
      lost: (error) => {
        if (!isCurrent()) return;
        this.#failed(error);
        this.#opened = clocks.mono.now();
        this.#forget(null);
        this.#source.onStray?.();
      },
      // Its callers need not wait for SUBSCRIBE until their time is up.
      refused: (error) => {
        if (!isCurrent()) return;
        this.#failed(error);
        this.#forget(error);
      },
      moved: () => this.#moved(connection),
      ended: () => isCurrent() && this.#drop(),
    });
    this.#connection = connection;
    this.#opened = clocks.mono.now();
    return connection;
  }

  /** `took`: how many ms it has been failing already. */
  #failed(error: unknown, took = 0): void {
    const [channel] = this.#channels.keys();
    this.#deafness.failed(error, channel, took);
  }

  /**
   * Slots went to another node, one message for each channel; which slots it does not say. Earlier
   * acknowledgements no longer count, for any of them. ioredis reports the same when a SUBSCRIBE of
   * ours is refused. RACE: that looks like slots that moved while a SUBSCRIBE was on its way, so it
   * is handled as such; the search for the channels is paced.
   */
  #moved(connection: Connection): void {
    if (this.#connection !== connection || this.#isMoving) return;
    this.#isMoving = true;
    setImmediate(() => {
      this.#isMoving = false;
      if (this.#connection !== connection) return;
      if (!this.#source.isWanted()) return this.#drop();
      this.#forget(new Error("the hash slot of the channel has moved"));
      this.#source.onStray?.();
    });
  }

  /**
   * After every connect: a library could resubscribe by itself, but would not report the
   * acknowledgement.
   */
  #subscribeAll(connection: Connection, ofHeard = false): void {
    const isMeant = ({ state, wasHeard }: Channel): boolean => state === "unheard" && (wasHeard || !ofHeard);
    const names = [...this.#channels].filter(([, channel]) => isMeant(channel)).map(([name]) => name);
    // In blocks: a call with more than some 100 000 arguments overflows the stack.
    const length = this.#source.isSharded ? 1 : BLOCK;
    for (let i = 0; i < names.length; i += length)
      void this.#subscribe(connection, names.slice(i, i + length));
  }

  async #subscribe(connection: Connection, names: readonly string[]): Promise<void> {
    for (const name of names) this.#channel(name).state = "asked";
    const forgotten = this.#forgotten;
    try {
      await this.#acknowledge(connection, names);
    } catch (error) {
      // Changes made meanwhile have been handled.
      if (this.#connection !== connection || this.#forgotten !== forgotten) return;
      for (const name of names) this.#channels.get(name)?.lost(error);
      const isSilent = error instanceof TimeoutError;
      // An observer that may not receive the news of its election reports that by itself.
      if (isSilent || !names.every(isNews)) this.#failed(error, isSilent ? this.#commands.replyTimeout : 0);
      // Half open: TCP would notice in a quarter of an hour.
      if (isSilent) this.#replace();
      this.#source.onStray?.();
      this.#subscribeLater(names);
      return;
    }
    if (this.#connection !== connection || this.#forgotten !== forgotten) return;
    let isMissed = false;
    for (const name of names) {
      const channel = this.#channels.get(name);
      if (channel && channel.listeners.size > 0) {
        isMissed ||= channel.isMissed;
        channel.isMissed = false;
        channel.heard();
        this.#deafness.heard();
        continue;
      }
      // Its last listener left while SUBSCRIBE was on its way.
      connection.unsubscribe(name);
      channel?.lost(new Error("no caller listens to the channel"));
      this.#delete(name);
    }
    if (isMissed) this.onGap();
  }

  /**
   * Retries channels that were subscribed before and are refused now, with one timer: more would be
   * a storm. A channel that was never subscribed is retried by its callers.
   */
  #subscribeLater(names: readonly string[]): void {
    const isLost = names.some((name) => this.#channels.get(name)?.wasHeard);
    if (this.#later || this.#source.isSharded || !isLost) return;
    const again = (): void => {
      this.#later = undefined;
      const connection = this.#connection;
      if (connection?.isReady && this.#source.isWanted()) this.#subscribeAll(connection, true);
    };
    this.#later = clientTimer(again, doubling(this.#failures++, RETRY_MIN, RETRY_MAX, RECHECK_SPREAD));
  }

  async #acknowledge(connection: Connection, names: readonly string[]): Promise<void> {
    await this.#inTime(connection.subscribe(names));
    const own = this.#probed === null ? names.find((name) => this.#source.isOwn(name)) : undefined;
    if (own !== undefined && this.#connection === connection) await this.#probe(own);
  }

  async #inTime(acknowledged: Promise<unknown>): Promise<void> {
    const { replyTimeout: milliseconds } = this.#commands;
    const message = `Redis did not acknowledge SUBSCRIBE within ${duration(milliseconds)}`;
    await pTimeout(acknowledged, { milliseconds, message, customTimers });
  }

  /**
   * Is the number of receivers of our own PUBLISH reliable? It decides whether dead waiters are
   * seen at once.
   */
  async #probe(channel: string): Promise<void> {
    const count = await publishProbe(this.#commands, channel, probeMessage(newNonce())).catch(() => 0);
    this.#counted = count > 0;
    this.#probed = channel;
  }

  /** `error`: for callers that must look elsewhere; null: the connection comes back. */
  #forget(error: Error | null): void {
    this.#forgotten++;
    this.#failures = 0;
    this.#probed = null;
    for (const channel of this.#channels.values()) {
      if (error) channel.lost(error);
      else channel.forgotten();
    }
  }

  #replace(): void {
    this.#drop();
    if (this.#source.isWanted()) this.#open();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = null;
    this.#forget(new Error("the connection that receives messages was closed or replaced"));
    connection?.close();
  }
}
