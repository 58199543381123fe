import type { RedisArgument } from "../../api/redis.ts";
import { Call } from "../../redis/call.ts";
import type { Link, LinkEvents, Listener, ListenerEvents } from "../../redis/driver.ts";
import { clocks } from "../../util/clock.ts";
import { clearTimeout, setImmediate, setTimeout } from "../../util/real-timers.ts";
import type { Receiver, Reply } from "./keyspace.ts";
import type { MemoryRedis } from "./memory-redis.ts";

/** One connection: what is sent arrives at the other end later, and in order. */
export interface Wire {
  toServer(work: () => void): void;
  toClient(work: () => void): void;
  /** Drops what is under way to the client. */
  close(): void;
}

/** The end of a connection at the client. */
export interface End {
  /** It needs no further connection. */
  readonly isClosed: boolean;
  /** The connection is gone. */
  lose(): void;
  /** A lost connection can come back. */
  restore(): void;
  /** Its process stands still: nothing is late meanwhile. */
  stop?(): void;
  /** Its process goes on. */
  go?(): void;
}

/** The way to a Redis in memory. */
export interface Network {
  readonly name: string;
  readonly redis: MemoryRedis;
  /** `closed` runs at the server, when it notices that the connection is gone. */
  connect(end: End, closed: () => void): Wire;
  /** Called after a script was sent. */
  sent?(call: Call, link: MemoryLink): void;
  /** Called after the server has run a script. */
  ran?(call: Call, reply: Reply | Error): void;
  /** Called when a client receives a script's reply. */
  answered?(call: Call): void;
  /** Called when a client receives a message. */
  received?(message: string): void;
}

/** As bytes, one character each. */
const bytes = (word: RedisArgument): string => {
  if (typeof word === "number") return String(word);
  return Buffer.isBuffer(word) ? word.toString("latin1") : Buffer.from(word).toString("latin1");
};
const utf8 = (text: string): string => Buffer.from(text, "latin1").toString();

/** As a driver's replies. */
function driven(reply: Reply): unknown {
  if (reply === null || typeof reply === "number") return reply;
  if (typeof reply === "string") return Buffer.from(reply, "latin1");
  return "ok" in reply ? Buffer.from(reply.ok) : reply.map(driven);
}

/** A command without a script, on its way to Redis and back. */
interface Command {
  readonly words: readonly RedisArgument[];
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A driver for a Redis in memory. */
export class MemoryLink implements Link, End {
  readonly library = "memory";
  readonly kind = "server";
  readonly keyPrefix = "";
  readonly address = "";
  readonly isTls = false;
  readonly Call = Call;
  readonly nodes = null;
  readonly opensOnce = false;
  readonly lastError = null;
  readonly heldUntil = Number.NEGATIVE_INFINITY;
  readonly holdsBack = false;
  readonly isOwn: boolean;
  readonly name: string;
  state: Link["state"] = "ready";
  /**
   * What becomes of written, unanswered calls when the connection is lost, as a driver's options say:
   * they are sent again, fail, or are forgotten.
   */
  atLoss: "sent again" | "fail" | "forgotten" = "sent again";
  protected readonly network: Network;
  #wire: Wire;
  /** Unanswered, in order. */
  readonly #calls = new Set<Call>();
  /** Those of them that wait for the end of this turn of the event loop, or for the next other call. */
  #late: Call[] = [];
  /** Unanswered, without a script, in order. */
  readonly #commands = new Set<Command>();
  /** While its process stands still: since when, and after how many ms each call is given up otherwise. */
  #stopped: { readonly since: number; readonly timeouts: Map<Call, number> } | null = null;
  readonly #watchers = new Set<LinkEvents>();
  #lostAt = 0;

  constructor(network: Network, isOwn = false) {
    this.network = network;
    this.name = network.name;
    this.isOwn = isOwn;
    this.#wire = network.connect(this, NOTHING);
  }

  get isClosed(): boolean {
    return this.state === "ended";
  }

  get status(): string {
    return this.state === "away" ? "connecting" : this.state;
  }

  get readyUntil(): number {
    return this.state === "ready" ? clocks.mono.now() : this.#lostAt;
  }

  on(events: LinkEvents): () => void {
    this.#watchers.add(events);
    return () => void this.#watchers.delete(events);
  }

  send(call: Call): void {
    if (this.state === "ended") {
      call.owner.refused(call, new Error(CLOSED));
      return;
    }
    this.#calls.add(call);
    this.#beLenient(call);
    call.isWritten = this.state === "ready";
    if (!call.isWritten) return;
    if (call.isLate) {
      if (this.#late.push(call) === 1) setImmediate(() => this.flush());
      return;
    }
    this.flush();
    this.#write(call);
  }

  #write(call: Call): void {
    const wire = this.#wire;
    const { name, script, keys } = call;
    const [names, words] = [keys.full.map(bytes), call.argv.map(bytes)];
    wire.toServer(() => {
      const { redis } = this.network;
      const reply = outcome(() =>
        name === "eval" ? redis.eval(script.lua, names, words) : redis.evalsha(script.sha, names, words),
      );
      this.network.ran?.(call, reply);
      wire.toClient(() => {
        this.#calls.delete(call);
        this.network.answered?.(call);
        if (reply instanceof Error) call.owner.refused(call, reply);
        else call.owner.replied(call, driven(reply));
      });
    });
    this.network.sent?.(call, this);
  }

  /** The connection is gone. */
  lose(): void {
    if (this.state !== "ready") return;
    this.#lostAt = clocks.mono.now();
    this.state = "away";
    this.#wire.close();
    this.#late = [];
    const written = this.atLoss === "sent again" ? [] : [...this.#calls];
    for (const call of written) this.#calls.delete(call);
    for (const { lost } of [...this.#watchers]) lost(this.atLoss === "forgotten" ? FORGOTTEN : null);
    if (this.atLoss === "fail") for (const call of written) call.owner.refused(call, new Error(CLOSED));
  }

  /** There is a connection again. */
  restore(): void {
    if (this.state !== "away") return;
    this.#wire = this.network.connect(this, NOTHING);
    this.state = "ready";
    for (const command of this.#commands) this.#ask(command);
    for (const call of [...this.#calls]) {
      call.isWritten = true;
      if (call.isOver) this.#calls.delete(call);
      else this.#write(call);
    }
    for (const { ready } of [...this.#watchers]) ready();
  }

  // ---- while its process stands still

  stop(): void {
    this.#stopped ??= { since: clocks.mono.now(), timeouts: new Map() };
    for (const call of this.#calls) this.#beLenient(call);
  }

  /** The time in which the process stood still makes no call late. */
  go(): void {
    const stopped = this.#stopped;
    if (!stopped) return;
    this.#stopped = null;
    for (const [call, timeout] of stopped.timeouts)
      call.timeout = timeout + clocks.mono.now() - Math.max(stopped.since, call.since);
  }

  #beLenient(call: Call): void {
    if (!this.#stopped || this.#stopped.timeouts.has(call)) return;
    this.#stopped.timeouts.set(call, call.timeout);
    call.timeout = Number.POSITIVE_INFINITY;
  }

  command(words: readonly RedisArgument[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.state === "ended") {
        reject(new Error(CLOSED));
        return;
      }
      const command = { words, resolve, reject };
      this.#commands.add(command);
      if (this.state === "ready") this.#ask(command);
    });
  }

  #ask(command: Command): void {
    const wire = this.#wire;
    wire.toServer(() => {
      const reply = outcome(() => this.network.redis.call(command.words.map(bytes)));
      wire.toClient(() => {
        this.#commands.delete(command);
        if (reply instanceof Error) command.reject(reply);
        else command.resolve(driven(reply));
      });
    });
  }

  commandOn(
    key: string,
    before: readonly RedisArgument[],
    after: readonly RedisArgument[],
  ): Promise<unknown> {
    return this.command([...before, key, ...after]);
  }

  listen(_isSharded: boolean, events: ListenerEvents): Listener {
    return new MemoryListener(this.network, events);
  }

  openOnce(): Link {
    throw new Error("a Redis in memory has no replicas");
  }

  open(): Link {
    return new MemoryLink(this.network, true);
  }

  flush(): void {
    const late = this.#late;
    this.#late = [];
    for (const call of late) this.#write(call);
  }

  replace(): boolean {
    if (this.state !== "ready") return false;
    this.lose();
    this.restore();
    return true;
  }

  close(): void {
    if (this.state === "ended") return;
    this.state = "ended";
    this.#wire.close();
    for (const { ended } of [...this.#watchers]) ended();
    for (const call of this.#calls) call.owner.refused(call, new Error(CLOSED));
    for (const { reject } of this.#commands) reject(new Error(CLOSED));
    this.#calls.clear();
    this.#commands.clear();
  }
}

const NOTHING = (): void => {};
const FORGOTTEN = "is not sent again";
const CLOSED = "Connection is closed.";

/** What Redis replies; an error's text as drivers read it. Any other error is a bug, and no reply. */
function outcome(run: () => Reply): Reply | Error {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ReplyError") throw error;
    error.message = utf8(error.message);
    return error;
  }
}

/** A connection for messages. */
class MemoryListener implements Listener, End {
  isReady = false;
  readonly #network: Network;
  readonly #events: ListenerEvents;
  #wire: Wire;
  /** What the server has of the present connection, by its channels. */
  #receivers = new Map<string, Receiver>();
  isClosed = false;
  #tries = 0;
  #again: NodeJS.Timeout | undefined;

  constructor(network: Network, events: ListenerEvents) {
    this.#network = network;
    this.#events = events;
    this.#wire = this.#connect();
  }

  /** Ready after one round trip. */
  #connect(): Wire {
    const known = new Map<string, Receiver>();
    this.#receivers = known;
    const wire = this.#network.connect(this, () => {
      for (const channel of [...known.keys()]) this.#leave(known, channel);
    });
    wire.toServer(() =>
      wire.toClient(() => {
        this.isReady = true;
        this.#tries = 0;
        this.#events.ready();
      }),
    );
    return wire;
  }

  subscribe(channels: readonly string[]): Promise<unknown> {
    const wire = this.#wire;
    const known = this.#receivers;
    return new Promise((resolve) => {
      wire.toServer(() => {
        for (const channel of channels.map(bytes)) {
          if (known.has(channel)) continue;
          const receive: Receiver = (from, message) =>
            wire.toClient(() => {
              this.#network.received?.(message);
              this.#events.message(utf8(from), utf8(message));
            });
          known.set(channel, receive);
          this.#network.redis.subscribe(channel, receive);
        }
        wire.toClient(() => resolve(null));
      });
    });
  }

  unsubscribe(channel: string): void {
    const known = this.#receivers;
    this.#wire.toServer(() => this.#leave(known, bytes(channel)));
  }

  #leave(known: Map<string, Receiver>, channel: string): void {
    const receive = known.get(channel);
    known.delete(channel);
    if (receive) this.#network.redis.unsubscribe(channel, receive);
  }

  /** The connection is gone. It comes back by itself, while it is wanted. */
  lose(): void {
    if (this.isClosed) return;
    this.isReady = false;
    this.#wire.close();
    this.#events.lost(null);
    if (this.isClosed) return;
    if (!this.#events.isWanted()) {
      this.isClosed = true;
      this.#events.ended();
      return;
    }
    this.#again = setTimeout(() => this.restore(), Math.min(++this.#tries * 50, 2_000)).unref();
  }

  /** Connects now, and not after its pause. */
  restore(): void {
    clearTimeout(this.#again);
    if (this.isClosed || this.isReady) return;
    this.#wire.close();
    this.#wire = this.#connect();
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.isReady = false;
    this.#wire.close();
  }
}
