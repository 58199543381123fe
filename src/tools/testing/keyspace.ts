import { newRequestId } from "../../util/random.ts";
import type { SortedSet } from "./sorted-set.ts";
import type { Stream } from "./stream.ts";

/** A status such as OK. */
export class Status {
  readonly ok: string;
  constructor(ok: string) {
    this.ok = ok;
  }
}

/** nil, integer, bulk, status, list. Texts are bytes: one character each, up to 255. */
export type Reply = null | number | string | Status | readonly Reply[];

/** An error that Redis replies, or that ends a script. */
export class RedisError extends Error {
  override readonly name = "ReplyError";
}

/** A key's value. `until`: its end in ms; Infinity: none. */
export type Kept = { until: number } & (
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "hash"; readonly value: Map<string, string> }
  | { readonly type: "zset"; readonly value: SortedSet }
  | { readonly type: "stream"; readonly value: Stream }
);
export type Receiver = (channel: string, message: string) => void;

/** The keys, channels and clock of a Redis in memory. */
export class Keyspace {
  readonly keys = new Map<string, Kept>();
  readonly channels = new Map<string, Set<Receiver>>();
  /** Which server this is: two nodes of a quorum must not be one. */
  readonly runId = newRequestId();
  readonly version: string;
  readonly #started: number;
  readonly #clock: () => number;
  #frozen: number | null = null;

  /** `clock`: its time, in µs. `version`: of which Redis, such as "6.2.14". */
  constructor(clock: () => number, version = "7.2.0") {
    this.#clock = clock;
    this.version = version;
    this.#started = this.micros;
  }

  /** In whole seconds. */
  get uptime(): number {
    return Math.floor((this.micros - this.#started) / 1e6);
  }

  get micros(): number {
    return this.#frozen ?? Math.floor(this.#clock());
  }

  get ms(): number {
    return Math.floor(this.micros / 1_000);
  }

  /** Runs a script: its time stands still. */
  atOnce<T>(run: () => T): T {
    this.#frozen = this.micros;
    try {
      return run();
    } finally {
      this.#frozen = null;
    }
  }

  /** The value of a key that has not expired: as in Redis it lives through the ms in which it ends. */
  find(key: string): Kept | undefined {
    const kept = this.keys.get(key);
    if (!kept || kept.until >= this.ms) return kept;
    this.keys.delete(key);
    return undefined;
  }

  subscribe(channel: string, receiver: Receiver): void {
    const receivers = this.channels.get(channel) ?? new Set();
    this.channels.set(channel, receivers.add(receiver));
  }

  unsubscribe(channel: string, receiver: Receiver): void {
    const receivers = this.channels.get(channel);
    receivers?.delete(receiver);
    if (receivers?.size === 0) this.channels.delete(channel);
  }

  receivers(channel: string): number {
    return this.channels.get(channel)?.size ?? 0;
  }

  /** Returns how many receivers it has. */
  publish(channel: string, message: string): number {
    const receivers = [...(this.channels.get(channel) ?? [])];
    for (const receive of receivers) receive(channel, message);
    return receivers.length;
  }
}
