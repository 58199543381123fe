import type { Redis } from "ioredis";
import { fencedEval, fencedSet } from "../../src/fencing/index.ts";
import { clientAt, type PostgresEnv } from "./postgres.ts";

/**
 * The target of a holder's write: a key of that name, or the row of that id in the table `orders`.
 */
export interface Target {
  readonly name: string;
  readonly postgres?: PostgresEnv;
}

export type WriterName = keyof typeof writers;

/**
 * Ways to write a value under a lock, each in its fenced and its careless form. They reject when
 * they are refused.
 */
export const writers = {
  SET: async (redis: Redis, { name }: Target, value: string, _token: number) => {
    await redis.set(name, value);
  },
  fencedSet: (redis: Redis, { name }: Target, value: string, token: number) =>
    fencedSet(redis, name, value, { fence: token }),

  EVAL: async (redis: Redis, { name }: Target, value: string, _token: number) => {
    await redis.eval(WRITE, 1, name, value);
  },
  fencedEval: async (redis: Redis, { name }: Target, value: string, token: number) => {
    await fencedEval(redis, WRITE, { keys: [name], args: [value], fence: token });
  },

  UPDATE: (_: Redis, target: Target, value: string, _token: number) =>
    query(target, "UPDATE orders SET status = $2 WHERE id = $1", [target.name, value]),
  "UPDATE with a fence": (_: Redis, target: Target, value: string, token: number) =>
    query(target, "UPDATE orders SET status = $2, fence = $3 WHERE id = $1 AND fence <= $3", [
      target.name,
      value,
      token,
    ]),
};

const WRITE = "return redis.call('SET', KEYS[1], ARGV[1])";

async function query({ postgres }: Target, text: string, values: (string | number)[]): Promise<void> {
  if (postgres === undefined) throw new Error("The target has no PostgreSQL");
  const client = clientAt(postgres);
  await client.connect();
  try {
    const { rowCount } = await client.query(text, values);
    if (rowCount !== 1)
      throw Object.assign(new Error("The row has seen a larger token"), { code: "STALE_TOKEN" });
  } finally {
    await client.end();
  }
}
