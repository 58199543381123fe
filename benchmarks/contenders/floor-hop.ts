import { randomUUID } from "node:crypto";
import { connect } from "./connect.ts";
import type { Contender, Release } from "./contender.ts";
import { script } from "./script.ts";

/** The least that a hand-off over Redis can do: write who has it, let it expire, and tell him. */
const HOP = `
redis.call("HSET", KEYS[1], "holder", ARGV[1], "token", ARGV[2])
redis.call("PEXPIRE", KEYS[1], 30000)
return redis.call("PUBLISH", ARGV[3], ARGV[2])`;

/**
 * No lock at all: a token goes round the processes, one script and one message for each hop. Nobody queues, nobody
 * checks, and nobody waits for the answer of his script. Of the callers of a process one gets it at each visit.
 */
export const openFloorHop: Contender["open"] = async (url, { worker, workers }) => {
  const [redis, subscriber] = await Promise.all([connect(url), connect(url)]);
  const hop = script(HOP);
  const key = "floor";
  const channel = (of: number): string => `floor:${of}`;
  let hops = 0;
  let isHere = worker === 0;
  const waiting: ((release: Release) => void)[] = [];

  const pass = async (): Promise<void> => {
    hop(redis, key, randomUUID(), ++hops, channel((worker + 1) % workers)).catch(() => {});
  };
  subscriber.on("message", () => {
    const give = waiting.shift();
    // Who has stopped asking still hands it on, for the others.
    if (give) give(pass);
    else void pass();
  });
  await subscriber.subscribe(channel(worker));

  return {
    acquire() {
      if (isHere) {
        isHere = false;
        return Promise.resolve(pass);
      }
      return new Promise((resolve) => waiting.push(resolve));
    },
    async close() {
      redis.disconnect();
      subscriber.disconnect();
    },
  };
};
