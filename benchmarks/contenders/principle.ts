import { connect } from "./connect.ts";
import type { Contender, Release } from "./contender.ts";

/** KEYS: lock, queue. ARGV: the process's channel. RETURNS 1: taken, 0: queued. */
const TAKE = `
if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", 30000) then
  return 1
end
redis.call("RPUSH", KEYS[2], ARGV[1])
return 0`;

/**
 * KEYS: lock, queue. ARGV: the process's channel, the name of the lock, which is the message to the
 * next holder.
 */
const GIVE = `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then
  return 0
end
local channel = redis.call("LPOP", KEYS[2])
if channel then
  redis.call("SET", KEYS[1], channel, "PX", 30000)
  redis.call("PUBLISH", channel, ARGV[2])
else
  redis.call("DEL", KEYS[1])
end
return 1`;

/**
 * Not safe, and no library: the principle of a hand-off with nothing around it. A release takes the
 * next process from a list, makes it the holder and tells it. What Holdfast needs beyond this is
 * the price of its promises.
 *
 * A process that ends while it waits gets the lock all the same, and keeps it until its TTL. A
 * message that is lost, a command that is sent again, or a release after the TTL breaks the count
 * of waiters or frees somebody else's lock. There is no token, no renewal, and no end of a wait.
 */
export const openPrinciple: Contender["open"] = async (url, { worker }) => {
  const [redis, subscriber] = await Promise.all([connect(url), connect(url)]);
  const [take, give] = (await Promise.all([TAKE, GIVE].map((lua) => redis.script("LOAD", lua)))) as [
    string,
    string,
  ];
  const channel = `principle:${worker}`;
  const waiting = new Map<string, ((release: Release) => void)[]>();

  /** As many grants come as callers of this process have asked: each goes to the one that waits longest. */
  const granted = (name: string): void => {
    const release = () => redis.evalsha(give, 2, name, `${name}:queue`, channel, name);
    waiting.get(name)?.shift()?.(release);
  };
  subscriber.on("message", (_channel: string, name: string) => granted(name));
  await subscriber.subscribe(channel);

  return {
    acquire(name) {
      return new Promise((resolve, reject) => {
        const callers = waiting.get(name);
        if (callers) callers.push(resolve);
        else waiting.set(name, [resolve]);
        redis.evalsha(take, 2, name, `${name}:queue`, channel).then((taken) => {
          if (taken === 1) granted(name);
        }, reject);
      });
    },
    async close() {
      redis.disconnect();
      subscriber.disconnect();
    },
  };
};
