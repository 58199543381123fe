import type { Kept } from "../../../src/tools/testing/keyspace.ts";
import type { MemoryRedis } from "../../../src/tools/testing/memory-redis.ts";
import type { Execution, KeyState, State } from "./execution.ts";

/** A recording that grows while scripts run. */
export interface Recording {
  readonly executions: readonly Execution[];
  /** How often each script has run, by its SHA. */
  readonly counts: ReadonlyMap<string, number>;
  /** No more is recorded. */
  stop(): void;
}

/** Records every script that this Redis runs from now on. Changes nothing that it does. */
export function record(redis: MemoryRedis): Recording {
  const { run, call, publish, receivers } = redis;
  const executions: Execution[] = [];
  const counts = new Map<string, number>();
  let heard = new Map<string, number>();
  let info = new Map<string, string>();
  let messages: string[] = [];

  redis.receivers = (channel) => {
    const count = receivers.call(redis, channel);
    heard.set(channel, count);
    return count;
  };
  redis.publish = (channel, message) => {
    const count = publish.call(redis, channel, message);
    heard.set(channel, count);
    messages.push(channel, message);
    return count;
  };
  redis.call = (words) => {
    const reply = call.call(redis, words);
    if (words[0] === "INFO") info.set(words[1] ?? "", String(reply));
    return reply;
  };
  redis.run = (sha, keys, argv) => {
    // The script's time, also where the clock goes on between these lines.
    return redis.atOnce(() => {
      const { micros } = redis;
      const before = stateOf(redis, keys, micros);
      // What is published or asked for beside the scripts is no part of them.
      [heard, info, messages] = [new Map(), new Map(), []];
      const ran = { sha, keys: [...keys], argv: [...argv], micros, before, receivers: heard, info, messages };
      const done = (reply: Execution["reply"]): void => {
        [heard, info, messages] = [new Map(), new Map(), []];
        // Of keys that had ended, those that the script has not touched are still there.
        const after = new Map([...stateOf(redis, keys, micros)].filter(([, { ttl }]) => ttl >= 0));
        counts.set(sha, (counts.get(sha) ?? 0) + 1);
        executions.push({ ...ran, after, reply });
      };
      try {
        const reply = run.call(redis, sha, keys, argv);
        done(reply);
        return reply;
      } catch (error) {
        // Drivers read the text of an error as UTF-8.
        if (error instanceof Error && error.name === "ReplyError")
          done(new Error(Buffer.from(error.message, "latin1").toString()));
        throw error;
      }
    });
  };
  return {
    executions,
    counts,
    stop: () => void Object.assign(redis, { run, call, publish, receivers }),
  };
}

function stateOf(redis: MemoryRedis, keys: readonly string[], micros: number): State {
  const state = new Map<string, KeyState>();
  const ms = Math.floor(micros / 1_000);
  for (const key of keys) {
    const kept = redis.keys.get(key);
    if (kept) state.set(key, { type: kept.type, value: contentOf(kept), ttl: kept.until - ms });
  }
  return state;
}

function contentOf({ type, value }: Kept): string[] {
  if (type === "string") return [value];
  if (type === "hash") return [...value].flat();
  if (type === "stream") throw new Error("no script has a stream");
  return value.members.flatMap((member) => [member, String(value.score(member))]);
}
