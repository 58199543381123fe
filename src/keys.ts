// Every key and channel name is built here; scripts build none. `keyPrefix` is what ioredis puts before keys, and only
// before keys: channels are data and carry it themselves, or PUBLISH would reach nobody.

/** The keys of one lock. The hash tag is the whole name, so that they share a slot whatever the name contains. */
export interface LockKeys {
  readonly lock: string;
  readonly queue: string;
  readonly waiters: string;
  readonly clock: string;
}

/** Braces would end the hash tag early; percent signs must stay decodable. */
const encode = (name: string): string => name.replace(/[%{}]/g, encodeURIComponent);
const decode = (text: string): string => text.replace(/%(25|7B|7D)/g, decodeURIComponent);

let latest: { readonly name: string; readonly keys: LockKeys } | null = null;

/** The keys of `lock` and `fairLock`. A lock that is used is used again: those of the last one are remembered. */
export function lockKeys(name: string): LockKeys {
  if (latest?.name === name) return latest.keys;
  const lock = `holdfast:{${encode(name)}}`;
  const keys = { lock, queue: `${lock}:queue`, waiters: `${lock}:waiters`, clock: "holdfast:clock" };
  latest = { name, keys };
  return keys;
}

/** The lock's name in a full key as a script sees it, prefix included. */
export function lockName(keyPrefix: string, key: string): string {
  return decode(key.slice(keyPrefix.length + "holdfast:{".length, -1));
}

/** Where a client is told of grants. */
export function clientChannel(keyPrefix: string, clientId: string): string {
  return `${keyPrefix}holdfast:client:${clientId}`;
}

/** Redisson's rule for helper keys: the name is braced unless it contains a brace already. */
const redissonHelper = (prefix: string, name: string): string =>
  name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`;

/** Redisson's release channel of a plain lock, for the name as Java knows it. */
export function redissonChannel(keyPrefix: string, name: string): string {
  return redissonHelper("redisson_lock__channel", keyPrefix + name);
}

/** Redisson's unlock latch of one request. */
export function redissonLatch(name: string, requestId: string): string {
  return `${redissonHelper("redisson_unlock_latch", name)}:${requestId}`;
}
