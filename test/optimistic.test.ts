import { execFile } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { ConflictError, optimistic, type Transaction, TransactionError } from "../src/index.ts";
import { type LocalServer, launchServer } from "../tools/redis.ts";
import { seeded } from "./contract/seed.ts";
import { freshName } from "./support/fixture.ts";
import { connectionIds, trackUnhandled } from "./support/leaks.ts";
import { until } from "./support/until.ts";

// WATCH, read, MULTI, EXEC. Every conflict here is a real one: another connection writes between the read and EXEC.

const unhandled = trackUnhandled();
let server: LocalServer;
let redis: Redis;
let other: Redis;
let key: string;

beforeAll(async () => {
  server = await launchServer();
  other = new Redis(server.url);
});
beforeEach(async () => {
  key = freshName("stock");
  redis = connect(new Redis(server.url));
  await redis.ping();
});
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.disconnect();
  await until(async () => (await connectionIds(other, "normal")).length === 0, {
    what: "the connections of the transactions to close with the caller's",
  });
  await unhandled.assertNone();
});
afterAll(async () => {
  unhandled.stop();
  other.disconnect();
  await server.stop();
});

const connections: { disconnect(): void }[] = [];

/** Ends with the test. */
function connect<T extends Redis | Redis5>(connection: T): T {
  connections.push(connection);
  return connection;
}

/** The error that a call rejects with. */
const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (value) => expect.fail(`resolved with ${String(value)}`),
    (error: unknown) => error,
  );

const sell = (stock: string) => async (tx: Transaction<Redis>) => {
  if (Number(await tx.redis.get(stock)) <= 0) return "sold out";
  tx.multi.decr(stock);
  return "sold";
};

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

  it("runs again when somebody else has written, and only then", async () => {
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
    ["was deleted and made again", (key) => other.del(key).then(() => other.set(key, 1))],
    ["got another time to live", (key) => other.expire(key, 100)],
    ["was renamed", (key) => other.rename(key, `${key}:old`)],
    [
      "was evicted",
      async (key) => {
        await other.expire(key, 100);
        await other.config("SET", "maxmemory-policy", "volatile-ttl");
        await other.config("SET", "maxmemory", "1");
        await until(async () => (await other.exists(key)) === 0);
        await other.config("SET", "maxmemory", "0");
      },
    ],
    ["was flushed", () => other.flushall()],
    [
      "ran out",
      async (key) => {
        await other.pexpire(key, 10);
        await until(async () => (await other.exists(key)) === 0);
      },
    ],
  ])("conflicts when a key %s", async (_, change) => {
    await other.set(key, 1);
    let runs = 0;
    await optimistic(redis, [`${key}:unused`, key], async (tx) => {
      await tx.redis.get(key);
      if (runs++ === 0) await change(key);
      tx.multi.set(`${key}:done`, runs);
    });
    expect([runs, await other.get(`${key}:done`)]).toEqual([2, "2"]);
  });

  it("conflicts when its key runs out by itself, though nobody looks", async () => {
    await other.set(key, 1, "PX", 30);
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      if (runs++ === 0) {
        await tx.redis.get(key);
        const end = Date.now() + 60;
        await until(() => Date.now() > end); // nobody touches the key
      }
      tx.multi.set(`${key}:done`, runs);
    });
    expect(runs).toBe(2);
  });

  it("conflicts when a missing key is made", async () => {
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

  it("confirms what it read although it writes nothing", async () => {
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

describe("conflicts without end", () => {
  it.each([0, 1, 5])("with %i retries end in a ConflictError after one try more", async (retries) => {
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

  it("are 17 tries by default, with pauses at random up to 2, 4, 8 … 250 ms", async ({ annotate }) => {
    const { seed, next } = seeded();
    await annotate(`HOLDFAST_SEED=${seed}`);
    const drawn: number[] = [];
    const random = vi.spyOn(Math, "random").mockImplementation(() => {
      drawn.push(next() / 50);
      return drawn.at(-1) ?? 0;
    });
    onTestFinished(() => random.mockRestore());
    const ends: number[] = [];
    const starts: number[] = [];
    const call = optimistic(redis, [key], async () => {
      starts.push(performance.now());
      await other.incr(key);
      ends.push(performance.now());
    });
    expect(await failure(call)).toMatchObject({ tries: 17 });
    const pauses = starts.slice(1).map((start, n) => start - (ends[n] ?? 0));
    for (const [n, pause] of pauses.entries())
      expect(pause).toBeGreaterThan((drawn[n] ?? 1) * Math.min(250, 2 ** (n + 1)) - 1.5);
    expect(drawn).toHaveLength(16);
  });

  it("never end with retries: Infinity, until the signal does it", async () => {
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

describe("a signal", () => {
  const reason = new Error("no longer wanted");

  it("that has aborted before sends nothing", async () => {
    const lazy = connect(new Redis(server.url, { lazyConnect: true }));
    const before = await connectionIds(other, "normal");
    const call = optimistic(lazy, [key], () => expect.fail("runs"), { signal: AbortSignal.abort(reason) });
    expect(await failure(call)).toBe(reason);
    expect(await connectionIds(other, "normal")).toEqual(before);
  });

  it("ends it at once while the body runs; what that does later is refused", async () => {
    const controller = new AbortController();
    let later: (() => unknown)[] = [];
    const body = async (tx: Transaction<Redis>) => {
      tx.multi.set(key, 1);
      later = [() => tx.redis.get(key), () => tx.redis.pipeline().get(key).exec(), () => tx.multi.get(key)];
      controller.abort(reason);
      await new Promise(() => {}); // never ends
    };
    expect(await failure(optimistic(redis, [key], body, { signal: controller.signal }))).toBe(reason);
    const [get, pipeline, queue] = later;
    await expect(get?.()).rejects.toThrow("a transaction that has ended");
    expect(await pipeline?.()).toMatchObject([[expect.any(Error)]]);
    expect(queue).toThrow("a transaction that has ended");
    expect(await optimistic(redis, [key], (tx) => tx.redis.get(key))).toBeNull();
  });

  it("that aborts with the body's last step still writes nothing", async () => {
    const controller = new AbortController();
    const body = (tx: Transaction<Redis>) => {
      tx.multi.set(key, 1);
      controller.abort(reason);
    };
    expect(await failure(optimistic(redis, [key], body, { signal: controller.signal }))).toBe(reason);
    expect(await other.exists(key)).toBe(0);
  });

  it("that aborts some microtasks after the body has returned: no EXEC is sent after that", async () => {
    const log: string[] = [];
    const { sendCommand } = Redis.prototype;
    const spy = vi.spyOn(Redis.prototype, "sendCommand").mockImplementation(function (this: Redis, ...args) {
      log.push(args[0].name);
      return sendCommand.apply(this, args);
    });
    onTestFinished(() => spy.mockRestore());
    await optimistic(redis, [key], () => {});
    for (let depth = 0; depth < 15; depth++) {
      const controller = new AbortController();
      log.length = 0;
      const body = (tx: Transaction<Redis>) => {
        tx.multi.set(key, depth);
        let later = Promise.resolve();
        for (let n = 0; n < depth; n++) later = later.then(() => {});
        void later.then(() => {
          log.push("abort");
          controller.abort(reason);
        });
      };
      const outcome = await optimistic(redis, [key], body, { signal: controller.signal }).catch((e) => e);
      const wasSent = log.includes("exec");
      expect([depth, outcome]).toEqual([depth, wasSent ? undefined : reason]);
      if (wasSent) expect(log.indexOf("exec")).toBeLessThan(log.indexOf("abort"));
      expect(await other.getdel(key)).toBe(wasSent ? `${depth}` : null);
    }
  });

  it("ends the pause between two tries", async () => {
    const controller = new AbortController();
    const random = vi.spyOn(Math, "random").mockReturnValue(1_000);
    onTestFinished(() => random.mockRestore());
    let runs = 0;
    const call = optimistic(
      redis,
      [key],
      async () => {
        runs++;
        await other.incr(key);
      },
      { signal: controller.signal },
    );
    await until(() => random.mock.calls.length === 1);
    controller.abort(reason);
    expect([await failure(call), runs]).toEqual([reason, 1]);
  });

  it("ends the waiting for a connection, and the others keep their places", async () => {
    const open: (() => void)[] = [];
    const busy = Array.from({ length: 8 }, () =>
      optimistic(redis, [key], () => new Promise<void>((end) => open.push(end))),
    );
    await until(() => open.length === 8);
    const controller = new AbortController();
    const order: string[] = [];
    const waiting = [
      optimistic(redis, [key], () => order.push("first")),
      optimistic(redis, [key], () => order.push("second"), { signal: controller.signal }),
      optimistic(redis, [key], () => order.push("third")),
    ];
    controller.abort(reason);
    expect(await failure(waiting[1] as Promise<unknown>)).toBe(reason);
    expect(order).toEqual([]);
    open.pop()?.();
    await Promise.all([waiting[0], waiting[2]]);
    expect(order).toEqual(["first", "third"]);
    for (const end of open) end();
    await Promise.all(busy);
  });
});

describe("commands that fail", () => {
  it("inside EXEC: the others have been executed, and the error says so", async () => {
    await other.set(`${key}:text`, "no number");
    const body = (tx: Transaction<Redis>) => void tx.multi.set(key, 1).incr(`${key}:text`);
    const error = await failure(optimistic(redis, [key], body));
    expect(error).toBeInstanceOf(TransactionError);
    expect(error).toMatchObject({ code: "TRANSACTION_FAILED", executed: "partly", keys: [key] });
    expect((error as TransactionError).replies).toEqual(["OK", expect.any(Error)]);
    expect((error as TransactionError).cause).toMatchObject({
      message: expect.stringContaining("not an integer"),
    });
    expect(await other.get(key)).toBe("1");
  });

  it("all of them inside EXEC: nothing was executed", async () => {
    await other.set(key, "no number");
    const error = await failure(optimistic(redis, [key], (tx) => void tx.multi.incr(key).decr(key)));
    expect(error).toMatchObject({ executed: "nothing", replies: [expect.any(Error), expect.any(Error)] });
  });

  it("at queueing: EXECABORT, nothing was executed, and the cause is the command's error", async () => {
    const body = (tx: Transaction<Redis>) => void tx.multi.set(key, 1).call("NO-SUCH-COMMAND");
    const error = await failure(optimistic(redis, [key], body));
    expect(error).toMatchObject({ executed: "nothing", replies: [] });
    expect(String(error)).toContain("unknown command");
    expect(await other.exists(key)).toBe(0);
    expect(await optimistic(redis, [key], sell(key))).toBe("sold out");
  });

  it("while reading: they are the body's to catch", async () => {
    await other.lpush(key, 1);
    const body = (tx: Transaction<Redis>) => tx.redis.get(key).catch((error: Error) => error.message);
    expect(await optimistic(redis, [key], body)).toContain("WRONGTYPE");
    await expect(optimistic(redis, [key], (tx) => tx.redis.get(key))).rejects.toThrow("WRONGTYPE");
  });

  it.each(["multi", "exec", "watch"])("without the right to %s: nothing is executed", async (command) => {
    const user = freshName("user").replaceAll(":", "-");
    await other.call("ACL", "SETUSER", user, "on", "nopass", "~*", "+@all", `-${command}`);
    onTestFinished(async () => void (await other.call("ACL", "DELUSER", user)));
    const limited = connect(new Redis(server.url, { username: user, password: "any" }));
    const error = await failure(optimistic(limited, [key], (tx) => void tx.multi.set(key, 1)));
    expect(error).toMatchObject({ code: "TRANSACTION_FAILED", executed: "nothing" });
    expect(String(error)).toMatch(/NOPERM/);
    expect(await other.exists(key)).toBe(0);
  });

  it("when the right to MULTI is taken away meanwhile: what was executed is unknown", async () => {
    const user = freshName("user").replaceAll(":", "-");
    await other.call("ACL", "SETUSER", user, "on", "nopass", "~*", "+@all");
    onTestFinished(async () => void (await other.call("ACL", "DELUSER", user)));
    const limited = connect(new Redis(server.url, { username: user, password: "any" }));
    const call = optimistic(limited, [key], async (tx) => {
      tx.multi.set(key, 1);
      await other.call("ACL", "SETUSER", user, "-multi");
    });
    expect(await failure(call)).toMatchObject({ executed: "unknown" });
  });
});

describe("misuse", () => {
  it("a transaction in the body of another is refused, also on another connection and after an await", async () => {
    const elsewhere = connect(new Redis(server.url));
    const inner = async (connection: Redis) => {
      await connection.ping();
      return optimistic(connection, [`${key}:2`], () => "inner");
    };
    for (const connection of [redis, elsewhere]) {
      const error = await failure(optimistic(redis, [key], () => inner(connection)));
      expect(error).toBeInstanceOf(TypeError);
      expect(String(error)).toContain("in the body of another");
    }
    // One that only starts there and comes later is a stranger.
    let late: Promise<string> | undefined;
    let ended = (): void => {};
    const end = new Promise<void>((resolve) => {
      ended = resolve;
    });
    await optimistic(redis, [key], () => {
      late = (async () => {
        await end;
        return inner(redis);
      })();
    });
    ended();
    expect(await late).toBe("inner");
  });

  it.each<[string, (tx: Transaction<Redis>) => unknown]>([
    ["unwatch", (tx) => tx.redis.unwatch()],
    ["multi", (tx) => tx.redis.multi({ pipeline: false })],
    ["multi", (tx) => tx.redis.multi().set("x", 1).exec()],
    ["select", (tx) => tx.redis.select(1)],
    ["select", (tx) => tx.redis.pipeline().get("x").select(1).get("x").exec()],
    ["connect", (tx) => tx.redis.connect()],
    ["subscribe", (tx) => tx.redis.subscribe("x")],
    ["exec", (tx) => tx.multi.set("x", 1).exec()],
    ["discard", (tx) => tx.multi.discard().set("x", 1)],
    ["watch", (tx) => tx.multi.watch("x")],
    ["select", (tx) => tx.multi.select(1)],
  ])("%s is refused, even when the body swallows the error: %s", async (command, use) => {
    const start = performance.now();
    let runs = 0;
    const call = optimistic(redis, [key], async (tx) => {
      runs++;
      tx.multi.set(key, 1);
      await Promise.resolve()
        .then(() => use(tx))
        .catch(() => {});
    });
    const error = await failure(call);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain(`Cannot ${command} in the body of a transaction`);
    expect([runs, await other.exists(key)]).toEqual([1, 0]);
    // The next one is well.
    await other.set(key, 1);
    expect(await optimistic(redis, [key], sell(key))).toBe("sold");
    // Replies that go to the wrong commands leave some without any, for 5 s.
    expect(performance.now() - start).toBeLessThan(1_600);
  });

  it("bad input is refused before anything is sent", async () => {
    const lazy = connect(new Redis({ lazyConnect: true, port: 1 }));
    const body = () => 1;
    const call = optimistic as (...args: unknown[]) => Promise<unknown>;
    const cases: [unknown[], typeof TypeError | typeof RangeError, string][] = [
      [[{}, ["a"], body], TypeError, "redis must be an ioredis connection"],
      [[null, ["a"], body], TypeError, "redis must be an ioredis connection"],
      [[lazy, "a", body], TypeError, "keys must be an array of strings, received 'a'"],
      [[lazy, undefined, body], TypeError, "keys must be an array of strings, received undefined"],
      [[lazy, [], body], RangeError, "keys must name one key at least"],
      [[lazy, ["a", 5], body], TypeError, "keys[1] must be a string, received 5"],
      [[lazy, [""], body], RangeError, "keys[0] must be a non-empty string, received ''"],
      [[lazy, ["a"]], TypeError, "body must be a function, received undefined"],
      [
        [lazy, ["a"], body, { retries: -1 }],
        RangeError,
        "retries must be a whole number from 0 to 2147483647, received -1",
      ],
      [[lazy, ["a"], body, { retries: 1.5 }], RangeError, "received 1.5"],
      [[lazy, ["a"], body, { retries: "3" }], TypeError, "received '3'"],
      [[lazy, ["a"], body, { retry: 3 }], TypeError, "unknown option 'retry'; known are retries, signal"],
      [[lazy, ["a"], body, { signal: 5 }], TypeError, "signal must be an AbortSignal, received 5"],
      [[lazy, ["a"], body, 5], TypeError, "options must be an object, received 5"],
    ];
    for (const [args, kind, message] of cases) {
      const error = await failure(call(...args));
      expect(error).toBeInstanceOf(kind);
      expect(String(error)).toContain(`Cannot run a transaction: `);
      expect(String(error)).toContain(message);
    }
    expect(lazy.status).toBe("wait");
  });
});

describe("connections", () => {
  it("are used again, and 8 at most, however many call", async () => {
    const before = await connectionIds(other, "normal");
    await optimistic(redis, [key], sell(key));
    const [own] = (await connectionIds(other, "normal")).filter((id) => !before.includes(id));
    const ids = new Set<unknown>();
    let inside = 0;
    let most = 0;
    const body = async (tx: Transaction<Redis>) => {
      most = Math.max(most, ++inside);
      ids.add(await tx.redis.client("ID"));
      inside--;
    };
    await Promise.all(Array.from({ length: 40 }, () => optimistic(redis, [key], body)));
    expect(ids.size).toBe(8);
    expect(most).toBeLessThanOrEqual(8);
    expect(ids).toContain(own);
  });

  it("close when the caller's connection is closed, and further calls are refused at once", async () => {
    await redis.ping();
    const before = await connectionIds(other, "normal");
    await optimistic(redis, [key], sell(key));
    let isRunning = false;
    let end = (): void => {};
    const running = optimistic(redis, [key], (tx) => {
      tx.multi.set(key, "done");
      isRunning = true;
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await until(() => isRunning);
    redis.disconnect();
    await once(redis, "end");
    const error = await failure(optimistic(redis, [key], sell(key)));
    expect(error).toMatchObject({ code: "TRANSACTION_FAILED", executed: "nothing" });
    expect(String(error)).toContain("is closed");
    end();
    await running; // what had begun is finished
    expect(await other.get(key)).toBe("done");
    await until(async () => (await connectionIds(other, "normal")).length === before.length - 1);
    await redis.connect();
    expect(await optimistic(redis, [key], (tx) => tx.redis.get(key))).toBe("done");
  });

  it("close when they were idle for 10 s", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const before = await connectionIds(other, "normal");
    await optimistic(redis, [key], sell(key));
    await vi.advanceTimersByTimeAsync(9_900);
    expect(await connectionIds(other, "normal")).toHaveLength(before.length + 1);
    await vi.advanceTimersByTimeAsync(200);
    vi.useRealTimers();
    await until(async () => (await connectionIds(other, "normal")).length === before.length);
  });

  it("put the caller's keyPrefix before keys, are on his database, and speak his protocol", async () => {
    for (const connection of [
      connect(new Redis(server.url, { keyPrefix: "app:", db: 3 })),
      connect(new Redis(server.url, { keyPrefix: "app:", db: 3, protocol: 2 })),
      connect(new Redis5(server.url, { keyPrefix: "app:", db: 3 })),
    ]) {
      await other.select(3);
      onTestFinished(async () => void (await other.select(0)));
      await other.set(`app:${key}`, 1);
      let runs = 0;
      const tx = await optimistic(connection, [key], async (tx) => {
        const value = Number(await tx.redis.get(key));
        if (runs++ === 0) await other.incr(`app:${key}`);
        tx.multi.set(key, value + 10).hgetall("none");
        return tx;
      });
      expect([runs, await other.get(`app:${key}`), tx.replies]).toEqual([2, "12", ["OK", {}]]);
      await connection.select(4); // the caller's keys are there from now on
      await optimistic(connection, [key], (tx) => void tx.multi.set(key, "4"));
      await other.select(4);
      expect(await other.get(`app:${key}`)).toBe("4");
    }
  });
});

describe("a process", { timeout: 30_000 }, () => {
  /** Runs a script in a process of its own; resolves with how it ended by itself, and the ms since its last word. */
  function run(
    script: string,
    ...args: string[]
  ): Promise<{ code: number | null; stdout: string; stderr: string; lag: number }> {
    const prelude = `
      import { Redis } from "ioredis";
      import { optimistic } from "./src/index.ts";
      const [url, key] = process.argv.slice(1);
      const redis = new Redis(url);
    `;
    const options = {
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      timeout: 15_000,
      killSignal: "SIGKILL",
    } as const;
    const words = ["--import", "tsx", "--input-type=module", "--eval", prelude + script, server.url, ...args];
    return new Promise((resolve) => {
      let said = 0;
      const child = execFile(process.execPath, words, options, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout, stderr, lag: performance.now() - said }),
      );
      child.stdout?.on("data", () => {
        said = performance.now();
      });
    });
  }

  it.each([
    ["quit", "await redis.quit();"],
    ["disconnected", "redis.disconnect();"],
    ["unref'd", "redis.stream.unref();"],
  ])("exits by itself when the connection it was given is %s", async (_, end) => {
    const script = `
      await Promise.all([1, 2, 3].map(() => optimistic(redis, [key], (tx) => void tx.multi.incr(key), { retries: 100 })));
      console.log(await redis.get(key));
      ${end}
    `;
    const { lag, ...ended } = await run(script, key);
    expect(ended).toEqual({ code: 0, stdout: "3\n", stderr: "" });
    expect(lag).toBeLessThan(3_300); // idle connections close after 10 s
  });

  it("does not exit in the middle of a transaction", async () => {
    const script = `
      await optimistic(redis, [key], () => {}); // the connection that is used again
      redis.stream.unref();
      await optimistic(redis, [key], async (tx) => {
        for (let n = 0; n < 50; n++) await tx.redis.get(key);
        tx.multi.set(key, "written");
      });
      console.log("done");
    `;
    expect(await run(script, key)).toMatchObject({ code: 0, stdout: "done\n", stderr: "" });
  });

  it("and another one sell 200 pieces to 600 orders: 200 are sold, none twice", async ({ annotate }) => {
    await other.set(key, 200);
    const script = `
      let runs = 0;
      const order = () => optimistic(redis, [key], async (tx) => {
        runs++;
        const stock = Number(await tx.redis.get(key));
        if (stock <= 0) return "sold out";
        tx.multi.decr(key).rpush(key + ":sold", stock);
        return "sold";
      }, { retries: 1_000 });
      const outcomes = await Promise.all(Array.from({ length: 300 }, order));
      console.log(JSON.stringify({ sold: outcomes.filter((one) => one === "sold").length, orders: outcomes.length, runs }));
      await redis.quit();
    `;
    const shops = await Promise.all([run(script, key), run(script, key)]);
    expect(shops).toMatchObject([
      { code: 0, stderr: "" },
      { code: 0, stderr: "" },
    ]);
    const [one, two] = shops.map(({ stdout }) => JSON.parse(stdout));
    await annotate(`sold ${one.sold} and ${two.sold}; ${one.runs + two.runs - 600} conflicts in 600 orders`);
    expect([one.sold + two.sold, one.orders + two.orders, await other.get(key)]).toEqual([200, 600, "0"]);
    expect(one.runs + two.runs).toBeGreaterThan(600); // there were conflicts
    const sold = await other.lrange(`${key}:sold`, 0, -1);
    expect(sold).toEqual(Array.from({ length: 200 }, (_, n) => `${200 - n}`));
  });
});
