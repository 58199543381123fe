// Every key and channel name is built here; scripts build none. `keyPrefix` is what ioredis puts
// before keys, and only before keys: channels are data and carry it themselves, or PUBLISH would
// reach nobody.
import { hashed, SlotKeys, slotOf } from "../util/slots.ts";

/**
 * The keys of one lock. The hash tag is the whole name, so that they share a slot whatever the name
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

/** The keys of a quorum lock at one node, and its release channel. */
export interface QuorumKeys extends Pick<LockKeys, "lock" | "clock"> {
  readonly free: string;
}

/** What is handed on by message; each has keys of its own. */
export type GrantProtocol = "handoff" | "rw" | "semaphore" | "election";

/** Braces would end the hash tag early; percent signs must stay decodable. */
const encode = (name: string): string => name.replace(/[%{}]/g, encodeURIComponent);
const decode = (text: string): string => text.replace(/%(25|7B|7D)/g, decodeURIComponent);

/**
 * Messages and values are cut at spaces, and their lengths are counted in bytes: printable ASCII
 * without a space.
 */
const PLAIN = /^[!-~]*$/;

/**
 * A prefix as it stands in channels: everything but printable ASCII is encoded. Then its braces
 * too, because the tag that Redis would find between them is another one than the keys have.
 */
function plain(prefix: string): string {
  if (PLAIN.test(prefix)) return prefix;
  return [...Buffer.from(prefix)]
    .map((byte) =>
      byte > 32 && byte < 127 && byte !== 123 && byte !== 125 ? String.fromCharCode(byte) : percent(byte),
    )
    .join("");
}

/** What a key belongs to: its lock, and whether it is the queue of that. */
export interface FoundKey {
  readonly family: GrantProtocol;
  readonly name: string;
  readonly isQueue: boolean;
}

const QUEUE = ":queue";

/** A pattern of Redis for keys that begin with one text and have others, in order, behind it. */
const globOf = (...texts: readonly string[]): string =>
  texts.map((text) => text.replace(/[\\*?[\]]/g, "\\$&")).join("*");

const GRANTED = /^holdfast:(?:(rw|semaphore|election):)?\{/;

const percent = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;

/** The names of a client's keys and channels. */
export class Keys {
  readonly prefix: string;
  /** Where callers that wait for long note what their scopes hold. */
  readonly waits = "holdfast:waits";
  /** As it stands in channels, and so in the ids of holds. */
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
   * The keys of `lock` and `fairLock`. A lock that is used is used again: those of the last one are
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
   * The keys of an election: those of a lock that is handed off, and that of the leader. And its
   * news channel, in their slot.
   */
  ofElection(name: string): LockKeys & { readonly leader: string; readonly news: string } {
    const lock = `holdfast:election:{${encode(name)}}`;
    const [queue, clients, leader] = [`${lock}:queue`, `${lock}:clients`, `${lock}:leader`];
    return { lock, queue, clients, clock: this.clock(lock), leader, news: `${this.prefix}${lock}:news` };
  }

  /** The turn of what runs once per interval. */
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

  /** The hash slot of a key of the caller's, for which ioredis puts the prefix before it. */
  slot(key: string): number {
    return slotOf(this.prefix + key);
  }

  /**
   * Where the highest token that a resource has seen is kept: in the slot of the key of that name,
   * whatever braces it has.
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
   * What a lock is that is handed on by message, by its full key as a message has it, prefix
   * included. Null: it is none.
   */
  granted(key: string): { readonly protocol: GrantProtocol; readonly name: string } | null {
    const [found, family] = GRANTED.exec(key.slice(this.prefix.length)) ?? [];
    const name = this.name(key);
    if (found === undefined || key !== `${this.prefix}${found}${encode(name)}}`) return null;
    return { protocol: (family as GrantProtocol | undefined) ?? "handoff", name };
  }

  /** What a full key that SCAN has named belongs to. Null: to nothing that is held or waited for. */
  found(key: string): FoundKey | null {
    const isQueue = key.endsWith(`}${QUEUE}`);
    const granted = this.granted(isQueue ? key.slice(0, -QUEUE.length) : key);
    return granted && { family: granted.protocol, name: granted.name, isQueue };
  }

  /**
   * A pattern for the full keys of these families in whose names these texts come in order; it fits
   * others too.
   */
  scanned(families: readonly GrantProtocol[], texts: readonly string[]): string {
    const [only = "handoff"] = families;
    const family = only === "handoff" ? "" : `${only}:`;
    const begin =
      families.length > 1 ? [`${this.prefix}holdfast:`, "{"] : [`${this.prefix}holdfast:${family}{`];
    return `${globOf(...begin)}${globOf(...texts.map(encode))}}*`;
  }

  /** The same for keys that are the bare names. */
  scannedBare([first = "", ...more]: readonly string[]): string {
    return globOf(this.prefix + first, ...more);
  }

  /** The bare name in a full key. */
  bare(key: string): string {
    return key.slice(this.prefix.length);
  }

  /** Such as those where clients are told of grants. */
  get anyChannel(): string {
    return `${this.#plainPrefix}holdfast:client:any`;
  }

  /** Where a client is told of grants: one channel, or one for each slot in use. */
  channels(clientId: string): (name: string) => string {
    const channel = `${this.#plainPrefix}holdfast:client:${clientId}`;
    if (!PLAIN.test(channel)) throw new TypeError(`unusable client id ${JSON.stringify(clientId)}`);
    if (!this.#isCluster) return () => channel;
    const channels = new SlotKeys((tag) => `${channel}:{${tag}}`);
    return (name) => channels.of(slotOf(this.prefix + this.of(name).lock));
  }

  /** The channel of whatever client has this id, for a lock. */
  channelOf(clientId: string, name: string): string {
    const channel = `${this.#plainPrefix}holdfast:client:${clientId}`;
    if (!this.#isCluster) return channel;
    // An id has no braces, so that the slot does not depend on it.
    return channel + this.#tags.of(slotOf(this.prefix + this.of(name).lock)).slice(this.anyChannel.length);
  }

  /**
   * Redisson braces names by a rule that gives some, `a}b` for one, keys in different slots: it
   * cannot unlock them.
   */
  fitsRedisson(name: string): boolean {
    if (!this.#isCluster) return true;
    const { prefix } = this;
    const helpers = [this.redissonLatch(name, "any"), this.redissonToken(name)].map((key) => prefix + key);
    // The same text, not only the same slot: that a key without a tag lands in it is chance, and
    // the next latch does not.
    return [this.redissonChannel(name), ...helpers].every((key) => hashed(key) === hashed(prefix + name));
  }

  /** Redisson's release channel of a plain lock, for the name as Java knows it. */
  redissonChannel(name: string): string {
    return redissonHelper("redisson_lock__channel", this.prefix + name);
  }

  /**
   * Redisson's unlock latch of one request, which nobody else reads. The prefix in its tag takes it
   * to the lock's slot.
   */
  redissonLatch(name: string, requestId: string): string {
    return `${redissonHelper("redisson_unlock_latch", this.prefix + name)}:${requestId}`;
  }

  /**
   * Redisson's token counter of a fenced lock. Java would not find it behind a prefix, which
   * ioredis puts before all of it.
   */
  redissonToken(name: string): string {
    return redissonHelper("redisson_lock_token", this.prefix + name);
  }
}

/** Redisson's rule for helper keys: the name is braced unless it contains a brace already. */
const redissonHelper = (prefix: string, name: string): string =>
  name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;

/**
 * Do all keys of a lock share a slot behind this prefix? Not behind `a{}b`: an empty tag makes the
 * whole key count.
 */
export function hasOneSlotPerLock(keyPrefix: string): boolean {
  return slotOf(`${keyPrefix}holdfast:{x}`) === slotOf(`${keyPrefix}holdfast:{x}:queue`);
}
