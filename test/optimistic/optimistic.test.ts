import type { Redis } from "ioredis";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ConflictError } from "../../src/index.ts";
import { optimistic, type Transaction } from "../../src/optimistic/index.ts";
import { pauses } from "../../src/util/abort.ts";
import { clocks } from "../../src/util/clock.ts";
import { failure } from "../contract/observe.ts";
import { seeded } from "../contract/seed.ts";
import { connectionIds } from "../support/leaks.ts";
import { serverIs } from "../support/server-version.ts";
import { until } from "../support/until.ts";
import { sell, transactions } from "./transactions.ts";

// WATCH, read, MULTI, EXEC. Every conflict here is a real one: another connection writes between
// the read and EXEC.

let redis: Redis;
let other: Redis;
let key: string;
transactions((props) => {
  ({ redis, other, key } = props);
});

describe("a transaction", () => {
  it("executes what its body queued, and resolves with its result", async () => {
    await other.set(key, 2);
    expect(await optimistic(redis, [key], sell(key))).toBe("sold");
    expect(await optimistic(redis, [key], sell(key))).toBe("sold");
    expect(await optimistic(redis, [key], sell(key))).toBe("sold out");
    expect(await other.get(key)).toBe("0");
  });

  it("writes nothing before its body has returned, and all of it together", async () => {
    await optimistic(redis, [key], async (tx) => {
      tx.multi.set(key, "a").set(`${key}:2`, "b");
      await tx.redis.ping();
      expect(await other.mget(key, `${key}:2`)).toEqual([null, null]);
    });
    expect(await other.mget(key, `${key}:2`)).toEqual(["a", "b"]);
  });

  it("has the replies when its body returns it", async () => {
    const tx = await optimistic(redis, [key], (tx) => {
      expect(() => tx.replies).toThrow("no replies before it was executed");
      tx.multi.incr(key).incrby(key, 5).get(key);
      return tx;
    });
    expect(tx.replies).toEqual([1, 6, "6"]);
  });

  it("runs again only if another client has written meanwhile", async () => {
    await other.set(key, 5);
    let runs = 0;
    const seen = await optimistic(redis, [key], async (tx) => {
      const value = Number(await tx.redis.get(key));
      if (runs++ < 2) await other.incr(key);
      tx.multi.set(key, value * 2);
      return value;
    });
    expect([runs, seen, await other.get(key)]).toEqual([3, 7, "14"]);
  });

  it.each<[string, (key: string) => Promise<unknown>]>([
    ["is set to the value that it had", (key) => other.set(key, 1)],
    ["was changed and changed back", (key) => other.incr(key).then(() => other.decr(key))],
    ["was deleted", (key) => other.del(key)],
    ["was deleted and created again", (key) => other.del(key).then(() => other.set(key, 1))],
    ["got another time to live", (key) => other.expire(key, 100)],
    ["was renamed", (key) => other.rename(key, `${key}:old`)],
    [
      "was evicted",
      async (key) => {
        await other.config("SET", "maxmemory-policy", "volatile-ttl");
        await other.config("SET", "maxmemory", "1");
        await until(async () => (await other.exists(key)) === 0);
        await other.config("SET", "maxmemory", "0");
      },
    ],
    ["was flushed", () => other.flushall()],
  ])("conflicts when a key %s", async (_, change) => {
    await other.set(key, 1, "EX", 100); // what "was evicted" evicts
    let runs = 0;
    await optimistic(redis, [`${key}:unused`, key], async (tx) => {
      await tx.redis.get(key);
      if (runs++ === 0) await change(key);
      tx.multi.set(`${key}:done`, runs);
    });
    expect([runs, await other.get(`${key}:done`)]).toEqual([2, "2"]);
  });

  it("conflicts when a key expires, though no client reads it", async () => {
    await other.set(key, 1, "PX", 2_000);
    const end = Date.now() + 2_050;
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      if (runs++ === 0) {
        expect(await tx.redis.get(key)).toBe("1"); // it was there to be watched
        await until(() => Date.now() > end); // nobody touches the key
      }
      tx.multi.set(`${key}:done`, runs);
    });
    // Before Redis 7.0 a key that is over, and that Redis has not deleted yet, is one that others change.
    if (serverIs("7.0")) expect(runs).toBe(2);
    else expect(runs).toBeGreaterThanOrEqual(2);
  });

  it("conflicts when a missing key is created", async () => {
    let runs = 0;
    const made = await optimistic(redis, [key], async (tx) => {
      const found = await tx.redis.get(key);
      if (runs++ === 0) await other.set(key, "theirs");
      if (found === null) tx.multi.set(key, "mine");
      return found === null;
    });
    expect([made, await other.get(key)]).toEqual([false, "theirs"]);
  });

  it("does not conflict with writes to other keys", async () => {
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      runs++;
      await other.incr(`${key}:other`);
      tx.multi.incr(key);
    });
    expect(runs).toBe(1);
  });

  it("watches further keys that the body names", async () => {
    await other.set(key, `${key}:target`);
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      const target = (await tx.redis.get(key)) ?? "";
      await tx.redis.watch(target);
      const value = Number(await tx.redis.get(target));
      if (runs++ === 0) await other.incrby(target, 10);
      tx.multi.set(target, value + 1);
    });
    expect([runs, await other.get(`${key}:target`)]).toEqual([2, "11"]);
  });

  it("confirms its reads although it writes nothing", async () => {
    await other.mset(key, 1, `${key}:2`, 1);
    let runs = 0;
    const read = await optimistic(redis, [key, `${key}:2`], async (tx) => {
      const first = await tx.redis.get(key);
      if (runs++ === 0) await other.mset(key, 2, `${key}:2`, 2); // between the two reads
      return [first, await tx.redis.get(`${key}:2`)];
    });
    expect([runs, read]).toEqual([2, ["2", "2"]]);
  });

  it("rejects with the body's error, writes nothing, and leaves nothing watched", async () => {
    for (const body of [
      (tx: Transaction<Redis>) => {
        tx.multi.set(key, 1);
        throw new Error("changed my mind");
      },
      async (tx: Transaction<Redis>) => {
        tx.multi.set(key, 1);
        await tx.redis.get(key);
        throw new Error("changed my mind");
      },
    ]) {
      await expect(optimistic(redis, [key], body)).rejects.toThrow("changed my mind");
    }
    expect(await other.exists(key)).toBe(0);
    // The same connection is used again: a WATCH that was left on it would make this one run twice.
    await other.set(key, "changed meanwhile");
    let runs = 0;
    await optimistic(redis, [`${key}:2`], async () => void runs++);
    expect([runs, (await connectionIds(other, "normal")).length]).toEqual([1, 2]);
  });

  it("leaves the caller's connection alone", async () => {
    const commands: string[] = [];
    const { sendCommand } = redis;
    redis.sendCommand = (command, ...rest) => {
      commands.push(command.name);
      return sendCommand.call(redis, command, ...rest);
    };
    await optimistic(redis, [key], sell(key));
    expect(commands).toEqual([]);
  });
});

describe("conflicts without limit", () => {
  it.each([0, 1, 5])("with %i retries end in a ConflictError after one more try", async (retries) => {
    let runs = 0;
    const error = await failure(
      optimistic(
        redis,
        [key, `${key}:2`],
        async (tx) => {
          runs++;
          await other.incr(key);
          tx.multi.set(`${key}:2`, "written");
        },
        { retries },
      ),
    );
    expect(error).toBeInstanceOf(ConflictError);
    expect(error).toMatchObject({ code: "CONFLICT", tries: retries + 1, keys: [key, `${key}:2`] });
    expect(String(error)).toContain(`${retries + 1} tries`);
    expect([runs, await other.exists(`${key}:2`)]).toEqual([retries + 1, 0]);
  });

  it("come of a body that writes a watched key through tx.redis: it conflicts with itself", async () => {
    let runs = 0;
    const body = async (tx: Transaction<Redis>) => {
      await tx.redis.set(key, ++runs);
      tx.multi.set(`${key}:2`, "written");
    };
    const error = await failure(optimistic(redis, [key], body, { retries: 2 }));
    expect(error).toMatchObject({ code: "CONFLICT", tries: 3, keys: [key] });
    expect([runs, await other.get(key), await other.exists(`${key}:2`)]).toEqual([3, "3", 0]);
  });

  it("end after 17 tries by default, with random pauses up to 2, 4, 8 … 250 ms", async ({ annotate }) => {
    const { seed, next } = seeded();
    await annotate(`HOLDFAST_SEED=${seed}`);
    const drawn: number[] = [];
    const random = vi.spyOn(Math, "random").mockImplementation(() => {
      drawn.push(next() / 50);
      return drawn.at(-1) ?? 0;
    });
    onTestFinished(() => random.mockRestore());
    const ends: number[] = [];
    // Not when the next try begins: the timers of Node.js may ring early on a busy machine.
    const began = vi.spyOn(pauses, "set");
    onTestFinished(() => began.mockRestore());
    const call = optimistic(redis, [key], async () => {
      await other.incr(key);
      ends.push(clocks.mono.now());
    });
    expect(await failure(call)).toMatchObject({ tries: 17 });
    for (const [n, [, until]] of began.mock.calls.entries())
      expect(until - (ends[n] ?? 0)).toBeGreaterThan((drawn[n] ?? 1) * Math.min(250, 2 ** (n + 1)) - 0.001);
    expect([drawn.length, began.mock.calls.length]).toEqual([16, 16]);
  });

  it("never end with retries: Infinity, until the signal ends them", async () => {
    const controller = new AbortController();
    let runs = 0;
    const body = async () => {
      await other.incr(key);
      if (++runs === 20) controller.abort("enough");
    };
    const call = optimistic(redis, [key], body, {
      retries: Number.POSITIVE_INFINITY,
      signal: controller.signal,
    });
    expect([await failure(call), runs]).toEqual(["enough", 20]);
  });
});
