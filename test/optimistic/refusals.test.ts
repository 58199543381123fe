import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { TransactionError } from "../../src/index.ts";
import { optimistic, type Transaction } from "../../src/optimistic/index.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { connectionIds } from "../support/leaks.ts";
import { until } from "../support/until.ts";
import { sell, transactions } from "./transactions.ts";

// What ends a transaction before EXEC, or is refused: signals, errors of commands, misuse.

let server: LocalServer;
let redis: Redis;
let other: Redis;
let key: string;
const { connect } = transactions((props) => {
  ({ server, redis, other, key } = props);
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

  it("ends it at once while the body runs, whose later commands are refused", async () => {
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

  it("that aborts some microtasks after the body has returned prevents any later EXEC", async () => {
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

  it("ends the wait for a connection, and the others keep their places", async () => {
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

  it("while reading: the body may catch them", async () => {
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

  it("if the right to MULTI is revoked meanwhile: the outcome is unknown", async () => {
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
    expect(performance.now() - start).toBeLessThan(4_500);
  });

  it("bad input is refused before anything is sent", async () => {
    const lazy = connect(new Redis({ lazyConnect: true, port: 1 }));
    const body = () => 1;
    const call = optimistic as (...args: unknown[]) => Promise<unknown>;
    const cases: [unknown[], typeof TypeError | typeof RangeError, string][] = [
      [
        [{}, ["a"], body],
        TypeError,
        "redis must be an ioredis connection, new Redis(…), or a node-redis client",
      ],
      [
        [null, ["a"], body],
        TypeError,
        "redis must be an ioredis connection, new Redis(…), or a node-redis client",
      ],
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
