import { randomUUID } from "node:crypto";
import { script } from "../../tools/redis/script.ts";
import { connect } from "./connect.ts";
import type { Contender, Release } from "./contender.ts";

/**
 * The least that a hand-off over Redis can do: write down the next holder, set the expiry, and tell
 * that holder.
 */
const HOP = `
redis.call("HSET", KEYS[1], "holder", ARGV[1], "token", ARGV[2])
redis.call("PEXPIRE", KEYS[1], 30000)
return redis.call("PUBLISH", ARGV[3], ARGV[2])`;

/**
 * No lock at all: a token goes round the processes, one script and one message for each hop. Nobody
 * queues, nobody checks, and no caller waits for the answer to its script. Of the callers of a
 * process one gets the token at each visit.
 */
export const openFloorHop = ring(false);

/**
 * The same, but every caller asks for the token: one more script that does nothing, behind the
 * answer to its hop. No lock with a queue that is left and joined again can send less.
 */
export const openFloorHopAndAsk = ring(true);

function ring(asks: boolean): Contender["open"] {
  return async (url, { worker, workers }) => {
    const [redis, subscriber] = await Promise.all([connect(url), connect(url)]);
    const hop = script(HOP);
    const nothing = script("return 1");
    const key = "floor";
    const channel = (of: number): string => `floor:${of}`;
    let hops = 0;
    let isHere = worker === 0;
    const waiting: ((release: Release) => void)[] = [];

    const pass = async (): Promise<void> => {
      const answer = hop(redis, key, randomUUID(), ++hops, channel((worker + 1) % workers));
      if (asks) await answer;
      else answer.catch(() => {});
    };
    subscriber.on("message", () => {
      const give = waiting.shift();
      // A process whose callers have stopped asking still hands the token on, for the other processes.
      if (give) give(pass);
      else void pass().catch(() => {});
    });
    await subscriber.subscribe(channel(worker));

    return {
      acquire() {
        if (asks) nothing(redis, key).catch(() => {});
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
}
