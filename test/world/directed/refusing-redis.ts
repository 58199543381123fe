import type { Reply } from "../../../src/tools/testing/keyspace.ts";
import type { MemoryRedis } from "../../../src/tools/testing/memory-redis.ts";
import type { Product } from "../product.ts";

/** Commands that a Redis without memory refuses ("deny-oom" in COMMAND). */
const NEED_MEMORY = new Set(["SET", "GETSET", "SETRANGE", "INCR", "HSET", "ZADD"]);
/** The others that write. */
const WRITE = new Set([
  ...NEED_MEMORY,
  ...["DEL", "PEXPIRE", "PERSIST", "HDEL", "ZREM", "ZPOPMIN", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE"],
]);

/** Why a Redis refuses commands, with the beginning of its error. */
export type Refusal =
  /** maxmemory is reached, with noeviction. */
  | "OOM"
  /** It is a replica. */
  | "READONLY"
  /** It cannot save. */
  | "MISCONF"
  /** It has too few replicas. */
  | "NOREPLICAS"
  /** It reads its data: every command is refused. */
  | "LOADING"
  /** The slot moves to another node: commands with several keys are refused. */
  | "TRYAGAIN";

export interface RefusingRedis extends MemoryRedis {
  /** Null: it refuses nothing. */
  refusal: Refusal | null;
  /** How often it has run each command, by its name. */
  readonly calls: Map<string, number>;
}

/**
 * A Redis that can refuse commands. As Redis does, it refuses no write of a script that has written
 * already, because a script has no half effect.
 */
export function refusing({
  MemoryRedis: Plain,
  RedisError,
}: Product): new (
  clock: () => number,
) => RefusingRedis {
  return class extends Plain {
    refusal: Refusal | null = null;
    readonly calls = new Map<string, number>();
    #isInScript = false;
    #hasWritten = false;

    override call(words: readonly string[]): Reply {
      const name = words[0]?.toUpperCase() ?? "";
      const { refusal } = this;
      this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
      const isRefused = (refusal === "OOM" ? NEED_MEMORY : WRITE).has(name) && !this.#hasWritten;
      if (refusal !== null && refusal !== "TRYAGAIN" && (refusal === "LOADING" || isRefused))
        throw new RedisError(`${refusal} refused by the test`);
      const reply = super.call(words);
      if (this.#isInScript && WRITE.has(name)) this.#hasWritten = true;
      return reply;
    }

    override run(sha: string, keys: readonly string[], argv: readonly string[]): Reply {
      const { refusal } = this;
      if (refusal === "LOADING" || (refusal === "TRYAGAIN" && keys.length > 1))
        throw new RedisError(`${refusal} refused by the test`);
      this.#isInScript = true;
      try {
        return super.run(sha, keys, argv);
      } finally {
        this.#isInScript = false;
        this.#hasWritten = false;
      }
    }
  };
}
