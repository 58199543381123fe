import { EventEmitter } from "node:events";
import type { RedisLike } from "../../src/api/redis.ts";
import { connectionLua } from "../../src/redis/client-lua.generated.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";

/** Keys and arguments of a script. */
type Args = readonly (string | number)[];

/**
 * A Redis that costs nothing: it says yes at once, to one holder at a time. What remains is the
 * client's own work. For nothing else: the tests talk to a real one.
 */
export function instantRedis(): RedisLike {
  const micros = (): number => Math.floor((performance.timeOrigin + performance.now()) * 1_000);
  let token = micros();
  const answers: Record<string, (args: Args, keys: number) => unknown> = {
    [handoffLua.firstAcquire.sha]: () => [codes.OWNER, micros(), ++token, 0],
    [handoffLua.acquire.sha]: () => `${++token}`,
    [handoffLua.yield.sha]: () => [codes.OWNER, micros(), ++token, 0],
    [handoffLua.release.sha]: () => codes.RELEASED,
    [handoffLua.renewStays.sha]: (args, keys) => [
      micros(),
      ...holds(args.slice(keys)).flatMap(([, ttl, told]) => [codes.RENEWED, ttl, 0, Number(told) || 0]),
    ],
    [connectionLua.probe.sha]: () => 1,
  };
  const redis = Object.assign(new EventEmitter(), {
    status: "ready",
    options: {},
    // Its own: so its commands are sent by callBuffer.
    evalsha: async () => null,
    callBuffer: async (_: string, sha: string, keys: number, ...args: (string | number)[]) =>
      answers[sha]?.(args, Number(keys)),
    eval: async () => null,
    sendCommand: () => null,
    subscribe: async () => 1,
    unsubscribe: async () => 1,
    disconnect: () => {},
    duplicate: () => instantRedis(),
  });
  return redis as unknown as RedisLike;
}

/** What a renewal of stays says of each: hold, TTL, told. */
const holds = (args: Args): Args[] =>
  Array.from({ length: args.length / 3 }, (_, i) => args.slice(3 * i, 3 * i + 3));
