import { codes } from "../../redis/codes.generated.ts";
import { FIRST_TOKEN } from "../../redis/fields.ts";
import { clocks } from "../../util/clock.ts";
import { detached } from "../../util/detached.ts";
import { setImmediate } from "../../util/real-timers.ts";

/** A key's value, until a time of the server in µs. */
export interface Kept {
  until: number;
}

/**
 * A held lock. `hold`: with its label after a space, as commands name it. `since`: the token of the
 * first hold of an unbroken chain of hand-offs.
 */
export interface Held extends Kept {
  readonly hold: string;
  readonly token: number;
  readonly since: number;
  told: number;
}

/**
 * The waiters, in order: what each is granted (lua/handoff/start.lua, lua/counted/start.lua), and
 * since when it waits, in µs.
 */
interface Queue extends Kept {
  readonly entries: Map<string, number>;
}

/** A hold without its label, as messages name it. */
export const idOf = (hold: string): string => hold.split(" ", 1)[0] ?? "";

/** A script's answer, as written in lua/: texts, numbers, and lists of these. */
export type Reply = string | number | readonly Reply[];

/**
 * A script's effect, by its keys and arguments. Each script declares its own, in the order of lua/.
 */
export type Run = { run(keys: readonly string[], argv: readonly (string | number)[]): Reply }["run"];

export type One = readonly [string];
export type Two = readonly [string, string];

export const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN, RENEWED, BLOCKED, DIFFERS, CROWDED, MOST_HOLDS } =
  codes;

/**
 * The Redis of a test's lock clients: keys with an end, a clock, tokens and messages. Messages
 * arrive in a later turn of the event loop, in the order in which they were sent, as on a
 * connection.
 */
export class Memory {
  readonly #kept = new Map<string, Kept>();
  readonly #channels = new Map<string, Set<(message: string) => void>>();
  /** The last fencing token given, with its local hand-offs. */
  lastToken = 0;
  /** How much is under way. */
  underWay = 0;

  /** The server's time in µs. */
  get now(): number {
    return Math.floor(clocks.wall.now() * 1_000);
  }

  // ---- keys

  get<T extends Kept>(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (!kept || kept.until > this.now) return kept as T | undefined;
    this.#kept.delete(key);
    return undefined;
  }

  /** Stores it for `ttl` ms. */
  keep<T extends object>(key: string, value: T, ttl = Number.POSITIVE_INFINITY): T & Kept {
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

  /** The ms left; -1: no end is set; -2: there is no such key. */
  left(kept: Kept | undefined): number {
    if (!kept) return -2;
    return kept.until === Number.POSITIVE_INFINITY ? -1 : Math.ceil((kept.until - this.now) / 1_000);
  }

  /** Raises an end, never lowers it. Returns the ms left. */
  raise(kept: Kept, ttl: number): number {
    kept.until = Math.max(kept.until, this.after(ttl));
    return this.left(kept);
  }

  /** A token above all earlier ones; reserves `passes` more after it. */
  token(passes: number): number {
    const token = Math.max(this.lastToken + 1, this.now, FIRST_TOKEN);
    this.lastToken = token + passes;
    return token;
  }

  /** The answer to a renewal: what happened to a hold, and the ms left. */
  renewal(held: (Kept & { readonly hold: string }) | undefined, hold: unknown, ttl: unknown): Reply[] {
    return held?.hold === hold ? [RENEWED, this.raise(held as Kept, Number(ttl))] : [held ? TAKEN : GONE, 0];
  }

  /** The same for several, each with a key and two arguments. */
  readonly renewals: Run = (keys, argv) =>
    keys.flatMap((key, i) => this.renewal(this.get<Held>(key), argv[2 * i], argv[2 * i + 1]));

  // ---- queues

  waiting(queue: string): readonly (readonly [entry: string, ticket: number])[] {
    return [...(this.get<Queue>(queue)?.entries ?? [])];
  }

  /** 1: a caller waits. */
  waits(queue: string): number {
    return this.get(queue) ? 1 : 0;
  }

  /** The place of an entry; -1: it is not queued. */
  placeOf(queue: string, entry: string): number {
    return this.waiting(queue).findIndex(([one]) => one === entry);
  }

  /** Returns its place. An entry that is queued already stays where it is. */
  enqueue(queue: string, entry: string): number {
    const { entries } = this.get<Queue>(queue) ?? this.keep(queue, { entries: new Map<string, number>() });
    entries.set(entry, entries.get(entry) ?? this.now);
    return this.placeOf(queue, entry);
  }

  /** Removes an entry from a queue. */
  take(queue: string, entry: string): void {
    const entries = this.get<Queue>(queue)?.entries;
    entries?.delete(entry);
    if (entries?.size === 0) this.drop(queue);
  }

  // ---- messages

  listen(channel: string, listener: (message: string) => void): void {
    const listeners = this.#channels.get(channel) ?? new Set();
    this.#channels.set(channel, listeners.add(listener));
  }

  unlisten(channel: string, listener: (message: string) => void): void {
    const listeners = this.#channels.get(channel);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#channels.delete(channel);
  }

  /** How many listeners a channel has. */
  listeners(channel: string): number {
    return this.#channels.get(channel)?.size ?? 0;
  }

  /** To the client of a hold. */
  tell(hold: string, message: string): void {
    this.publish(idOf(hold).slice(0, -22), message);
  }

  /** `label`: of the caller that force-released it, as one word. */
  tellRevoked(hold: string, key: string, label: string): void {
    this.tell(hold, `revoked ${idOf(hold)} ${key}${label && ` ${label}`}`);
  }

  /** Returns how many listeners receive it. */
  publish(channel: string, message: string): number {
    for (const listener of this.#channels.get(channel) ?? []) this.soon(() => listener(message));
    return this.listeners(channel);
  }

  /** Resolves when all messages under way have arrived, with their consequences. */
  async settled(): Promise<void> {
    do await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.underWay > 0);
  }

  /** Outside of any caller's context, like what a connection reads. */
  soon(work: () => void): void {
    this.underWay++;
    detached(() =>
      setImmediate(() => {
        this.underWay--;
        work();
      }),
    );
  }
}
