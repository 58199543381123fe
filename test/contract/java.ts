import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";

const TRY = `
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`;

const TRY_FENCED = `
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  local token = redis.call('incr', KEYS[2])
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return {-1, token}
end
return {redis.call('pttl', KEYS[1]), -1}`;

const UNLOCK = `
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1`;

/**
 * One thread of a Java service that uses Redisson's RLock: what it sends, without its waiting and
 * its watchdog.
 */
export class JavaThread {
  readonly owner = `${randomUUID()}:72`;
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Null: it has the lock. Else the time in ms that is left to the holder, -1 when there is no end. */
  async tryLock(name: string, lease = 30_000): Promise<number | null> {
    return (await this.#redis.eval(TRY, 1, name, lease, this.owner)) as number | null;
  }

  /** RFencedLock: its token, or null when another caller holds it. */
  async tryFencedLock(name: string, lease = 30_000): Promise<number | null> {
    const reply = await this.#redis.eval(TRY_FENCED, 2, name, counterOf(name), lease, this.owner);
    const [ttl, token] = reply as [number, number];
    return ttl === -1 ? token : null;
  }

  /** 1: unlocked. 0: still held, by an earlier entry. Null: IllegalMonitorStateException. */
  async unlock(name: string): Promise<number | null> {
    return (await this.#redis.eval(UNLOCK, 2, name, channelOf(name), "0", this.owner)) as number | null;
  }
}

/** Redisson's rule, written down once more: a test that asked the code for the name could not fail. */
const helperOf = (helper: string) => (name: string) =>
  name.includes("{") ? `${helper}:${name}` : `${helper}:{${name}}`;
export const channelOf = helperOf("redisson_lock__channel");
export const counterOf = helperOf("redisson_lock_token");
