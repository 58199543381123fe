// Every key and channel name is built here; scripts build none. `keyPrefix` is what ioredis puts before keys, and only
// before keys: channels are data and carry it themselves, or PUBLISH would reach nobody.
import { hashed, SlotKeys, slotOf } from "./cluster/slots.ts";

/** The keys of one lock. The hash tag is the whole name, so that they share a slot whatever the name contains. */
export interface LockKeys {
  readonly lock: string;
  readonly queue: string;
  readonly waiters: string;
  /** One for a server; in Cluster one for each slot in use, because a script reaches no other slot. */
  readonly clock: string;
}

/** Braces would end the hash tag early; percent signs must stay decodable. */
const encode = (name: string): string => name.replace(/[%{}]/g, encodeURIComponent);
const decode = (text: string): string => text.replace(/%(25|7B|7D)/g, decodeURIComponent);

/** The names of a client's keys and channels. */
export class Keys {
  readonly prefix: string;
  readonly #isCluster: boolean;
  readonly #clocks: SlotKeys;
  #latest: { readonly name: string; readonly keys: LockKeys } | null = null;

  constructor(prefix: string, isCluster: boolean) {
    this.prefix = prefix;
    this.#isCluster = isCluster;
    this.#clocks = new SlotKeys((tag) => `${prefix}holdfast:clock:{${tag}}`);
  }

  /** The keys of `lock` and `fairLock`. A lock that is used is used again: those of the last one are remembered. */
  of(name: string): LockKeys {
    if (this.#latest?.name === name) return this.#latest.keys;
    const lock = `holdfast:{${encode(name)}}`;
    const keys = { lock, queue: `${lock}:queue`, waiters: `${lock}:waiters`, clock: this.clock(lock) };
    this.#latest = { name, keys };
    return keys;
  }

  /** The clock of the server, or slot, where this key lives. */
  clock(key: string): string {
    if (!this.#isCluster) return "holdfast:clock";
    return this.#clocks.of(slotOf(this.prefix + key)).slice(this.prefix.length);
  }

  /** The clock of the slot of this channel. */
  clockOfChannel(channel: string): string {
    return this.#clocks.of(slotOf(channel)).slice(this.prefix.length);
  }

  /** The lock's name in a full key as a script sees it, prefix included. */
  name(key: string): string {
    return decode(key.slice(this.prefix.length + "holdfast:{".length, -1));
  }

  /** Such as those where clients are told of grants. */
  get anyChannel(): string {
    return `${this.prefix}holdfast:client:any`;
  }

  /** Where a client is told of grants: one channel, or one for each slot in use. */
  channels(clientId: string): (name: string) => string {
    const channel = `${this.prefix}holdfast:client:${clientId}`;
    if (!this.#isCluster) return () => channel;
    const channels = new SlotKeys((tag) => `${channel}:{${tag}}`);
    return (name) => channels.of(slotOf(this.prefix + this.of(name).lock));
  }

  /** Redisson braces names by a rule that gives some, `a}b` for one, keys in different slots: it cannot unlock them. */
  fitsRedisson(name: string): boolean {
    if (!this.#isCluster) return true;
    const keys = [this.prefix + this.redissonLatch(name, "any"), this.redissonChannel(name)];
    // The same text, not only the same slot: that a key without a tag lands in it is chance, and the next latch does not.
    return keys.every((key) => hashed(key) === hashed(this.prefix + name));
  }

  /** Redisson's release channel of a plain lock, for the name as Java knows it. */
  redissonChannel(name: string): string {
    return redissonHelper("redisson_lock__channel", this.prefix + name);
  }

  /** Redisson's unlock latch of one request, which nobody else reads. The prefix in its tag takes it to the lock's slot. */
  redissonLatch(name: string, requestId: string): string {
    return `${redissonHelper("redisson_unlock_latch", this.prefix + name)}:${requestId}`;
  }
}

/** Redisson's rule for helper keys: the name is braced unless it contains a brace already. */
const redissonHelper = (prefix: string, name: string): string =>
  name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;
