import { outside } from "../util/outside.ts";

/** What a key holds, until a time of the server in µs. */
export interface Kept {
  until: number;
}

/** The words of a script's answer, as they are written in lua/: texts, numbers, and lists of these. */
export type Reply = string | number | readonly Reply[];

/** What a script does: with its keys and arguments, which stand where lua/ says. */
export type Run = (keys: readonly string[], argv: readonly (string | number)[]) => Reply;

/** As it was when this was loaded: where a test replaces the timers, its locks go on. */
const nextTurn = setImmediate;

/**
 * What Redis is to the lock clients of a test: keys that end, a clock, tokens and messages. What arrives does so in a later turn of
 * the event loop, in the order in which it was sent, as by a connection.
 */
export class Memory {
  readonly #kept = new Map<string, Kept>();
  readonly #channels = new Map<string, Set<(message: string) => void>>();
  /** The last fencing token that was given, passes included. */
  lastToken = 0;
  /** How much is under way. */
  underWay = 0;

  /** The server's time in µs. */
  get now(): number {
    return Math.floor((performance.timeOrigin + performance.now()) * 1_000);
  }

  // ---- keys

  get<T extends Kept>(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (!kept || kept.until > this.now) return kept as T | undefined;
    this.#kept.delete(key);
    return undefined;
  }

  /** For so many ms. */
  keep<T extends object>(key: string, ttl: number, value: T): T & Kept {
    const kept = { ...value, until: this.after(ttl) };
    this.#kept.set(key, kept);
    return kept;
  }

  drop(key: string): void {
    this.#kept.delete(key);
  }

  keys(): string[] {
    return [...this.#kept.keys()];
  }

  after(ttl: number): number {
    return this.now + ttl * 1_000;
  }

  /** ms that are left; -1: no end is set; -2: there is nothing. */
  left(kept: Kept | undefined): number {
    if (!kept) return -2;
    return kept.until === Number.POSITIVE_INFINITY ? -1 : Math.ceil((kept.until - this.now) / 1_000);
  }

  /** Raises an end, and never brings it nearer. Returns the ms that are left. */
  raise(kept: Kept, ttl: number): number {
    kept.until = Math.max(kept.until, this.after(ttl));
    return this.left(kept);
  }

  /** Above all before it, and those of so many passes behind it. */
  token(passes: number): number {
    const token = Math.max(this.lastToken + 1, this.now);
    this.lastToken = token + passes;
    return token;
  }

  // ---- what travels

  listen(channel: string, listener: (message: string) => void): void {
    const listeners = this.#channels.get(channel) ?? new Set();
    this.#channels.set(channel, listeners.add(listener));
  }

  unlisten(channel: string, listener: (message: string) => void): void {
    const listeners = this.#channels.get(channel);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#channels.delete(channel);
  }

  /** How many hear a channel. */
  listeners(channel: string): number {
    return this.#channels.get(channel)?.size ?? 0;
  }

  /** Returns how many hear it. */
  publish(channel: string, message: string): number {
    for (const listener of this.#channels.get(channel) ?? []) this.soon(() => listener(message));
    return this.listeners(channel);
  }

  /** In no caller's context, as what a connection reads. */
  soon(work: () => void): void {
    this.underWay++;
    outside(() =>
      nextTurn(() => {
        this.underWay--;
        work();
      }),
    );
  }
}
