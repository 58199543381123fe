import { createCluster } from "redis";
import { describe, expect, it, onTestFinished } from "vitest";
import { ConflictError, type TransactionError } from "../../src/index.ts";
import { optimistic, type Transaction } from "../../src/optimistic/index.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { connectionIds } from "../support/leaks.ts";
import { type NodeRedisClient, type NodeRedisOptions, openNodeRedis } from "../support/node-redis.ts";
import { until } from "../support/until.ts";
import { transactions } from "./transactions.ts";

// `optimistic` on a client of node-redis. Every conflict is a real one.

let server: LocalServer;
let other: Parameters<Parameters<typeof transactions>[0]>[0]["other"];
let key: string;
const { connect } = transactions((props) => {
  ({ server, other, key } = props);
});

describe.each([5, 6] as const)("on node-redis %i", (version) => {
  /** A client that ends with the test. */
  function open(options: NodeRedisOptions = {}): NodeRedisClient {
    const { host, port } = server;
    const client = openNodeRedis(version, { host, port, ...options });
    connect({ disconnect: () => client.isOpen && client.destroy() });
    return client;
  }

  const add = async (tx: Transaction<NodeRedisClient>) => {
    const value = Number(await tx.redis.get(key));
    tx.multi.set(key, value + 1);
    return tx;
  };

  it("a transaction executes what its body queued, in the methods and replies of that library", async () => {
    const redis = open();
    await other.set(key, 200);
    const tx = await optimistic(redis, [key], async (tx) => {
      expect(() => tx.replies).toThrow("no replies before it was executed");
      const stock = Number(await tx.redis.get(key));
      tx.multi.decr(key).rPush(`${key}:sold`, `${stock}`).hGetAll(`${key}:none`);
      expect(await other.get(key)).toBe("200");
      return tx;
    });
    expect(tx.replies).toEqual([199, 1, {}]);
    expect(await other.get(key)).toBe("199");
  });

  it("it runs again when another client has written meanwhile, and ends in a ConflictError", async () => {
    const redis = open();
    await other.set(key, 5);
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      const value = Number(await tx.redis.get(key));
      if (runs++ < 2) await other.incr(key);
      tx.multi.set(key, value * 2);
    });
    expect([runs, await other.get(key)]).toEqual([3, "14"]);
    const always = async (tx: Transaction<NodeRedisClient>) => {
      await other.incr(key);
      tx.multi.set(`${key}:2`, "written");
    };
    const error = await failure(optimistic(redis, [key], always, { retries: 2 }));
    expect(error).toBeInstanceOf(ConflictError);
    expect(await other.exists(`${key}:2`)).toBe(0);
  });

  it("it watches keys that the body names, and nothing is left watched after a failed body", async () => {
    const redis = open();
    let runs = 0;
    await optimistic(redis, ["unused"], async (tx) => {
      await tx.redis.watch(key);
      if (runs++ === 0) await other.incr(key);
      tx.multi.set(`${key}:done`, `${runs}`);
    });
    expect(runs).toBe(2);
    const throwing = () => {
      throw new Error("changed my mind");
    };
    await expect(optimistic(redis, [key], throwing)).rejects.toThrow("changed my mind");
    await other.incr(key);
    let again = 0;
    await optimistic(redis, ["unused"], () => void again++);
    expect(again).toBe(1);
  });

  it("it uses 8 connections at most, which close with the client", async () => {
    const redis = open();
    await redis.ping();
    const before = await connectionIds(other, "normal");
    const ids = new Set<unknown>();
    const body = async (tx: Transaction<NodeRedisClient>) => void ids.add(await tx.redis.clientId());
    await Promise.all(Array.from({ length: 40 }, () => optimistic(redis, [key], body)));
    expect(ids.size).toBe(8);
    redis.destroy();
    await until(async () => (await connectionIds(other, "normal")).length === before.length - 1);
    const error = await failure(optimistic(redis, [key], () => {}));
    expect(String(error)).toContain("is closed");
  });

  it("it uses the client's database, key prefix and commandOptions", async () => {
    const prefix = version === 6 ? "app:" : "";
    const redis = open({ database: 3, ...(prefix && { keyPrefix: prefix }) });
    await other.select(3);
    onTestFinished(async () => void (await other.select(0)));
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      if (runs++ === 0) await other.set(`${prefix}${key}`, 41);
      await add(tx);
    });
    expect([runs, await other.get(`${prefix}${key}`)]).toEqual([2, "42"]);
  });

  it("commands that fail inside EXEC, and before it, are told apart", async () => {
    const redis = open();
    await other.set(`${key}:text`, "no number");
    const partly = (tx: Transaction<NodeRedisClient>) => void tx.multi.set(key, "1").incr(`${key}:text`);
    const error = await failure(optimistic(redis, [key], partly));
    expect(error).toMatchObject({ executed: "partly", replies: ["OK", expect.any(Error)] });
    expect((error as TransactionError).cause).toMatchObject({
      message: expect.stringContaining("not an integer"),
    });
    const unknown = (tx: Transaction<NodeRedisClient>) =>
      void tx.multi.set(`${key}:2`, "1").sendCommand(["NO-SUCH-COMMAND"]);
    const refused = await failure(optimistic(redis, [key], unknown));
    expect(refused).toMatchObject({ executed: "nothing", replies: [] });
    expect(String(refused)).toContain("unknown command");
    expect(await other.exists(`${key}:2`)).toBe(0);
    await expect(optimistic(redis, [`${key}:text`], (tx) => tx.redis.lLen(`${key}:text`))).rejects.toThrow(
      "WRONGTYPE",
    );
  });

  it("without the right to MULTI nothing is executed; if it is revoked meanwhile, that is unknown", async () => {
    const user = key.replaceAll(":", "-");
    await other.call("ACL", "SETUSER", user, "on", ">secret", "~*", "+@all");
    onTestFinished(async () => void (await other.call("ACL", "DELUSER", user)));
    const redis = open({ username: user, password: "secret" });
    const revoked = optimistic(redis, [key], async (tx) => {
      tx.multi.set(key, "1");
      await other.call("ACL", "SETUSER", user, "-multi");
    });
    expect(await failure(revoked)).toMatchObject({ executed: "unknown" });
    await other.del(key);
    const later = open({ username: user, password: "secret" });
    const error = await failure(optimistic(later, [key], (tx) => void tx.multi.set(key, "1")));
    expect(error).toMatchObject({ executed: "nothing" });
    expect(String(error)).toMatch(/NOPERM/);
    expect(await other.exists(key)).toBe(0);
  });

  it("a connection that is lost between WATCH and EXEC executes nothing, and another one is used", async () => {
    const redis = open();
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      const value = Number(await tx.redis.get(key));
      if (runs++ === 0) {
        await other.client("KILL", "ID", await tx.redis.clientId());
        await until(() => !tx.redis.isOpen, { what: "the client under test to see its loss" });
        await other.set(key, 41);
      }
      tx.multi.set(key, value + 1);
    });
    expect([runs, await other.get(key)]).toEqual([2, "42"]);
  });

  it.each<[string, (tx: Transaction<NodeRedisClient>) => unknown]>([
    ["unwatch", (tx) => tx.redis.unwatch()],
    ["multi", (tx) => tx.redis.multi()],
    ["select", (tx) => tx.redis.select(1)],
    ["select", (tx) => tx.redis.withTypeMapping({}).select(1)],
    ["exec", (tx) => tx.redis.sendCommand(["EXEC"])],
    ["subscribe", (tx) => tx.redis.subscribe("x", () => {})],
    ["destroy", (tx) => tx.redis.destroy()],
    ["exec", (tx) => tx.multi.set("x", "1").exec()],
    ["select", (tx) => tx.multi.select(1)],
  ])("%s is refused in the body, even when it swallows the error: %s", async (command, use) => {
    const redis = open();
    const call = optimistic(redis, [key], async (tx) => {
      tx.multi.set(key, "1");
      await Promise.resolve()
        .then(() => use(tx))
        .catch(() => {});
    });
    const error = await failure(call);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain(`Cannot ${command} in the body of a transaction`);
    expect(await other.exists(key)).toBe(0);
    await optimistic(redis, [key], add);
    expect(await other.get(key)).toBe("1");
  });

  it("commands of a body that has ended are refused", async () => {
    const redis = open();
    const tx = await optimistic(redis, [key], (tx) => tx);
    await expect(tx.redis.get(key)).rejects.toThrow("a transaction that has ended");
    expect(() => tx.multi.set(key, "1")).toThrow("a transaction that has ended");
  });
});

it("a Cluster of node-redis is refused with a message that says what works", async () => {
  const error = await failure(optimistic(createCluster({ rootNodes: [] }), ["a"], () => 1));
  expect(error).toBeInstanceOf(TypeError);
  expect(String(error)).toContain("what createClient(…) returns");
});
