// The locks of a hundred articles: take it by one command, ask again after a pause while somebody else has it.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { connect } from "./connect.ts";
import type { Contender } from "./contender.ts";
import { script } from "./script.ts";

/** How a lock lies in Redis. An owner is one acquisition: callers of one process exclude each other. */
interface Kind {
  take(redis: Redis, name: string, owner: string, lease: number): Promise<boolean>;
  drop(redis: Redis, name: string, owner: string): Promise<unknown>;
}

/** Nothing renews it. */
const LEASE_MS = 30_000;

/** A string with its owner. */
const plain: Kind = {
  take: async (redis, name, owner, lease) => (await redis.set(name, owner, "PX", lease, "NX")) === "OK",
  drop: script(
    'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end',
  ),
};

const enter = script(`
if redis.call("EXISTS", KEYS[1]) == 0 or redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
  redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
  return nil
end
return redis.call("PTTL", KEYS[1])`);

const leave = script(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return nil end
if redis.call("HINCRBY", KEYS[1], ARGV[1], -1) > 0 then return 0 end
return redis.call("DEL", KEYS[1])`);

/** A hash of the owner and its number of entries: Redisson's layout without its channel. */
const reentrant: Kind = {
  take: async (redis, name, owner, lease) => (await enter(redis, name, owner, lease)) === null,
  drop: leave,
};

/** About 1, 2, 4 … 128 ms: half to one and a half of it, since with equal pauses everybody asks at the same moment. */
const backOff = (attempt: number): number => Math.min(2 ** attempt, 128) * (0.5 + Math.random());

export const openSpin1To128 = spin(reentrant, backOff);
export const openSpin80 = spin(plain, () => 80);
export const openSpin10 = spin(plain, () => 10);

function spin(kind: Kind, pause: (attempt: number) => number): Contender["open"] {
  return async (url) => {
    const redis = await connect(url);
    return {
      async acquire(name, { wait, lease }) {
        const owner = randomUUID();
        const giveUpAt = performance.now() + wait;
        for (let attempt = 0; ; attempt += 1) {
          if (await kind.take(redis, name, owner, lease ?? LEASE_MS))
            return () => kind.drop(redis, name, owner);
          const left = giveUpAt - performance.now();
          if (left <= 0) return null;
          await delay(Math.min(pause(attempt), left));
        }
      },
      async close() {
        redis.disconnect();
      },
    };
  };
}
