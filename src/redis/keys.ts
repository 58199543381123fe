// Every key and channel name is built here; scripts build none. A prefix is the library's `keyPrefix`,
// which it puts before keys by itself, and only before keys, and then the client's `prefix`. Channels
// are data and contain both themselves, otherwise PUBLISH would reach no client.
import { hashed, SlotKeys, slotOf } from "../util/slots.ts";

/**
 * The keys of one lock. The hash tag is the whole name, so they share a slot whatever the name
 * contains.
 */
export interface LockKeys {
  readonly lock: string;
  readonly queue: string;
  readonly clients: string;
  /** One for a server; in Cluster one for each slot in use, because a script reaches no other slot. */
  readonly clock: string;
}

/** The keys of a counted resource: `hash` has the holds and the books. */
export interface CountedKeys extends Omit<LockKeys, "lock"> {
  readonly hash: string;
}

/** The keys of a lock whose holder runs a body, of its result, and of the last one's token. */
export interface RememberKeys extends LockKeys {
  readonly result: string;
  readonly last: string;
}

/** The keys of a quorum lock at one node, and its release channel. */
export interface QuorumKeys extends Pick<LockKeys, "lock" | "clock"> {
  readonly free: string;
}

/** The protocols that hand off by message; each has its own keys. */
export type GrantProtocol = "handoff" | "rw" | "semaphore" | "election" | "remember";

/** Braces would end the hash tag early; percent signs must be decodable. */
const encode = (name: string): string => name.replace(/[%{}]/g, encodeURIComponent);
const decode = (text: string): string => text.replace(/%(25|7B|7D)/g, decodeURIComponent);

/**
 * Messages and values are cut at spaces, and their lengths are counted in bytes: printable ASCII
 * without a space.
 */
const PLAIN = /^[!-~]*$/;

/**
 * A prefix as channels contain it: every character but printable ASCII is encoded. Then its braces
 * are encoded too, because Redis would find another hash tag between them than in the keys.
 */
function plain(prefix: string): string {
  if (PLAIN.test(prefix)) return prefix;
  return [...Buffer.from(prefix)]
    .map((byte) =>
      byte > 32 && byte < 127 && byte !== 123 && byte !== 125 ? String.fromCharCode(byte) : percent(byte),
    )
    .join("");
}

/** The lock that a key belongs to, and whether the key is its queue. */
export interface FoundKey {
  readonly family: GrantProtocol;
  readonly name: string;
  readonly isQueue: boolean;
}

const QUEUE = ":queue";

/**
 * A Redis pattern for keys that begin with the first text and contain the others after it, in
 * order.
 */
const globOf = (...texts: readonly string[]): string =>
  texts.map((text) => text.replace(/[\\*?[\]]/g, "\\$&")).join("*");

/** Is this channel that of an election's news? */
export const isNews = (channel: string): boolean => channel.includes("holdfast:election:{");

const GRANTED = /^holdfast:(?:(rw|semaphore|election|remember):)?\{/;

const percent = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;

/** The names of a client's keys and channels. */
export class Keys {
  readonly prefix: string;
  /** Where callers that wait long record the locks of their scopes. */
  readonly waits = "holdfast:waits";
  /** As channels, and so the ids of holds, contain it. */
  readonly #plainPrefix: string;
  readonly #isCluster: boolean;
  readonly #clocks: SlotKeys;
  readonly #fences: SlotKeys;
  readonly #tags: SlotKeys;
  #latest: { readonly name: string; readonly keys: LockKeys } | null = null;

  constructor(prefix: string, isCluster: boolean) {
    this.prefix = prefix;
    this.#plainPrefix = plain(prefix);
    this.#isCluster = isCluster;
    this.#clocks = new SlotKeys((tag) => `${prefix}holdfast:clock:{${tag}}`);
    this.#tags = new SlotKeys((tag) => `${this.anyChannel}:{${tag}}`);
    this.#fences = new SlotKeys((tag) => `${prefix}holdfast:fence:{${tag}}`);
  }

  /**
   * The keys of `lock` and `fairLock`. Locks are often reused, so the keys of the last one are
   * remembered.
   */
  of(name: string): LockKeys {
    if (this.#latest?.name === name) return this.#latest.keys;
    const lock = `holdfast:{${encode(name)}}`;
    const keys = { lock, queue: `${lock}:queue`, clients: `${lock}:clients`, clock: this.clock(lock) };
    this.#latest = { name, keys };
    return keys;
  }

  /**
   * The keys of a read-write lock or a semaphore. No other kind touches them, so `lock("x")` is
   * another lock.
   */
  ofCounted(family: "rw" | "semaphore", name: string): CountedKeys {
    const hash = `holdfast:${family}:{${encode(name)}}`;
    return { hash, queue: `${hash}:queue`, clients: `${hash}:clients`, clock: this.clock(hash) };
  }

  /**
   * The keys of an election: those of a lock that is handed off, the leader's, and its news
   * channel, in the same slot.
   */
  ofElection(name: string): LockKeys & { readonly leader: string; readonly news: string } {
    const lock = `holdfast:election:{${encode(name)}}`;
    const [queue, clients, leader] = [`${lock}:queue`, `${lock}:clients`, `${lock}:leader`];
    return { lock, queue, clients, clock: this.clock(lock), leader, news: `${this.prefix}${lock}:news` };
  }

  /** The keys of a result that callers share, in one slot. */
  ofRemembered(name: string): RememberKeys {
    const lock = `holdfast:remember:{${encode(name)}}`;
    const [queue, clients, result, last] = [
      `${lock}:queue`,
      `${lock}:clients`,
      `${lock}:result`,
      `${lock}:last`,
    ];
    return { lock, queue, clients, clock: this.clock(lock), result, last };
  }

  /** The turn of a job that runs once per interval. */
  ofOnce(name: string): string {
    return `holdfast:once:{${encode(name)}}`;
  }

  /**
   * The keys of a quorum lock at each of its nodes, and its release channel there. No other kind
   * touches them.
   */
  ofQuorum(name: string): QuorumKeys {
    const lock = `holdfast:quorum:{${encode(name)}}`;
    return { lock, clock: "holdfast:quorum:clock", free: `${this.prefix}${lock}:free` };
  }

  /** The clock of the server, or slot, where this key lives. */
  clock(key: string): string {
    if (!this.#isCluster) return "holdfast:clock";
    return this.#clocks.of(slotOf(this.prefix + key)).slice(this.prefix.length);
  }

  /** The hash slot of one of the caller's own keys, to which the prefix is added. */
  slot(key: string): number {
    return slotOf(this.prefix + key);
  }

  /**
   * Where the highest token of a resource is stored: in the slot of the key of that name, whatever
   * braces it has.
   */
  fence(resource: string): string {
    if (!this.#isCluster) return `holdfast:fence:${resource}`;
    return `${this.#fences.of(this.slot(resource)).slice(this.prefix.length)}:${resource}`;
  }

  /** The clock of the slot of this channel. */
  clockOfChannel(channel: string): string {
    return this.#clocks.of(slotOf(channel)).slice(this.prefix.length);
  }

  /** The lock's name in a full key of any family as a script sees it, prefix included. */
  name(key: string): string {
    return decode(key.slice(key.indexOf("{", this.prefix.length) + 1, -1));
  }

  /**
   * The kind and name of a lock that is handed off by message, from its full key in a message,
   * prefix included. Null: it is none.
   */
  granted(key: string): { readonly protocol: GrantProtocol; readonly name: string } | null {
    const [found, family] = GRANTED.exec(key.slice(this.prefix.length)) ?? [];
    const name = this.name(key);
    if (found === undefined || key !== `${this.prefix}${found}${encode(name)}}`) return null;
    return { protocol: (family as GrantProtocol | undefined) ?? "handoff", name };
  }

  /**
   * The lock that a full key from SCAN belongs to. Null: the key is neither held nor waited for.
   */
  found(key: string): FoundKey | null {
    const isQueue = key.endsWith(`}${QUEUE}`);
    const granted = this.granted(isQueue ? key.slice(0, -QUEUE.length) : key);
    return granted && { family: granted.protocol, name: granted.name, isQueue };
  }

  /**
   * A pattern for the full keys of these families whose names contain these texts in order; it also
   * matches others.
   */
  scanned(families: readonly GrantProtocol[], texts: readonly string[]): string {
    const [only = "handoff"] = families;
    const family = only === "handoff" ? "" : `${only}:`;
    const begin =
      families.length > 1 ? [`${this.prefix}holdfast:`, "{"] : [`${this.prefix}holdfast:${family}{`];
    return `${globOf(...begin)}${globOf(...texts.map(encode))}}*`;
  }

  /** The same for keys that are bare names. */
  scannedBare([first = "", ...more]: readonly string[]): string {
    return globOf(this.prefix + first, ...more);
  }

  /** The bare name in a full key. */
  bare(key: string): string {
    return key.slice(this.prefix.length);
  }

  /** A channel of the form on which clients receive grants. */
  get anyChannel(): string {
    return `${this.#plainPrefix}holdfast:client:any`;
  }

  /** Where a client receives grants: one channel, or one for each slot in use. */
  channels(clientId: string): (name: string) => string {
    const channel = `${this.#plainPrefix}holdfast:client:${clientId}`;
    if (!PLAIN.test(channel)) throw new TypeError(`unusable client id ${JSON.stringify(clientId)}`);
    if (!this.#isCluster) return () => channel;
    const channels = new SlotKeys((tag) => `${channel}:{${tag}}`);
    return (name) => channels.of(slotOf(this.prefix + this.of(name).lock));
  }

  /** The channel of the client with this id, for a lock. */
  channelOf(clientId: string, name: string): string {
    const channel = `${this.#plainPrefix}holdfast:client:${clientId}`;
    if (!this.#isCluster) return channel;
    // An id has no braces, so the slot does not depend on it.
    return channel + this.#tags.of(slotOf(this.prefix + this.of(name).lock)).slice(this.anyChannel.length);
  }

  /**
   * Redisson's rule for braces puts the keys of some names, such as `a}b`, into different slots: it
   * cannot unlock them.
   */
  fitsRedisson(name: string): boolean {
    if (!this.#isCluster) return true;
    const { prefix } = this;
    const helpers = [this.redissonLatch(name, "any"), this.redissonToken(name)].map((key) => prefix + key);
    // Compares the text, not only the slot: a key without a tag lands in that slot by chance, and
    // the next latch would not.
    return [this.redissonChannel(name), ...helpers].every((key) => hashed(key) === hashed(prefix + name));
  }

  /** Redisson's release channel of a plain lock, for the name as Java knows it. */
  redissonChannel(name: string): string {
    return redissonHelper("redisson_lock__channel", this.prefix + name);
  }

  /**
   * Redisson's unlock latch of one request, which no other client reads. The prefix in its tag puts
   * it into the lock's slot.
   */
  redissonLatch(name: string, requestId: string): string {
    return `${redissonHelper("redisson_unlock_latch", this.prefix + name)}:${requestId}`;
  }

  /**
   * Redisson's token counter of a fenced lock. Java would not find it with a prefix, which
   * comes before the whole key.
   */
  redissonToken(name: string): string {
    return redissonHelper("redisson_lock_token", this.prefix + name);
  }
}

/** Redisson's rule for helper keys: the name is braced unless it contains a brace already. */
const redissonHelper = (prefix: string, name: string): string =>
  name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;

/**
 * Do all keys of a lock share a slot with this prefix? Not with `a{}b`: an empty tag makes the
 * whole key count.
 */
export function hasOneSlotPerLock(keyPrefix: string): boolean {
  return slotOf(`${keyPrefix}holdfast:{x}`) === slotOf(`${keyPrefix}holdfast:{x}:queue`);
}
