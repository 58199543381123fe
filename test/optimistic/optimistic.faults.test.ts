import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { TransactionError } from "../../src/index.ts";
import { optimistic, type Transaction } from "../../src/optimistic/index.ts";
import { failure } from "../contract/observe.ts";
import { seeded } from "../contract/seed.ts";
import { Stage, timed } from "../support/stage.ts";
import { named } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Transactions whose connection breaks, or falls silent, at each of their steps. The transactions
// pass the proxy; the writes that they must not overwrite go straight.

const stage = new Stage();

const add = (key: string, n: number) => async (tx: Transaction<Redis>) => {
  const value = Number(await tx.redis.get(key));
  tx.multi.set(key, value + n);
  return value;
};

/** Opens the connection that the next transaction uses. */
const warm = () => optimistic(stage.near.redis, ["warm"], () => {});

/** A connection through the proxy that gives up sooner. */
function impatient(): Redis {
  const redis = new Redis(stage.proxy.url, { commandTimeout: 300, retryStrategy: () => 20 });
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}

describe("the connection breaks", () => {
  it("between WATCH and EXEC, and the key changes meanwhile: nothing is overwritten", async () => {
    const { near, far, proxy, lock } = stage;
    await warm();
    let runs = 0;
    const seen = await optimistic(near.redis, [lock.name], async (tx) => {
      const value = Number(await tx.redis.get(lock.name));
      if (runs++ === 0) {
        const closed = once(tx.redis, "close");
        proxy.cut();
        await far.redis.set(lock.name, 41);
        await closed;
        await until(() => ["end", "ready"].includes(tx.redis.status), {
          what: "the connection's end or return",
        });
      }
      tx.multi.set(lock.name, value + 1);
      return value;
    });
    expect([runs, seen, await far.redis.get(lock.name)]).toEqual([2, 41, "42"]);
  });

  it("between WATCH and EXEC in every try: a TransactionError, nothing executed", async () => {
    const { near, far, proxy, lock } = stage;
    let runs = 0;
    const body = async (tx: Transaction<Redis>) => {
      runs++;
      const closed = once(tx.redis, "close");
      proxy.cut();
      await closed;
      tx.multi.set(lock.name, 1);
    };
    const error = await failure(optimistic(near.redis, [lock.name], body, { retries: 2 }));
    expect(error).toBeInstanceOf(TransactionError);
    expect(error).toMatchObject({ executed: "nothing", keys: [lock.name] });
    expect(String(error)).toContain("in 3 tries");
    expect([runs, await far.redis.exists(lock.name)]).toEqual([3, 0]);
  });

  it.each([
    ["WATCH is lost", "dropCommand", "watch", 1],
    ["the reply to WATCH is lost", "dropReply", "watch", 1],
    ["a read is lost", "dropCommand", "get", 2],
    ["the reply to a read is lost", "dropReply", "get", 2],
  ] as const)("%s: it is retried", async (_, fault, command, wanted) => {
    const { near, far, proxy, lock } = stage;
    await warm();
    let runs = 0;
    const dropped = proxy[fault](named(command));
    await optimistic(near.redis, [lock.name], (tx) => {
      runs++;
      return add(lock.name, 1)(tx);
    });
    await dropped;
    expect([runs, await far.redis.get(lock.name)]).toEqual([wanted, "1"]);
  });

  it("the body's own error counts if the connection is sound, and not if it results from a lost one", async () => {
    const { near, proxy, lock } = stage;
    await warm();
    const dropped = proxy.dropReply(named("get"));
    let runs = 0;
    const call = failure(
      optimistic(near.redis, [lock.name], async (tx) => {
        runs++;
        const value = await tx.redis.get(lock.name).catch(() => "broken");
        throw new Error(`read ${value}`);
      }),
    );
    await dropped;
    expect(String(await call)).toContain("read null");
    expect(runs).toBe(2);
  });

  it.each([
    ["the reply to EXEC is lost: executed once, reported as unknown, not retried", "dropReply", "exec", "1"],
    ["EXEC is lost: not executed, reported as unknown all the same", "dropCommand", "exec", null],
    ["MULTI is lost with all later commands: the same", "dropCommand", "multi", null],
  ] as const)("%s", async (_, fault, command, stored) => {
    const { near, far, proxy, lock } = stage;
    await warm();
    let runs = 0;
    const dropped = proxy[fault](named(command));
    const error = await failure(
      optimistic(near.redis, [lock.name], (tx) => {
        runs++;
        return add(lock.name, 1)(tx);
      }),
    );
    await dropped;
    expect(error).toMatchObject({ code: "TRANSACTION_FAILED", executed: "unknown" });
    expect(String(error)).toContain("may have been executed, because EXEC was sent and not answered");
    expect([runs, await far.redis.get(lock.name)]).toEqual([1, stored]);
    await optimistic(near.redis, [lock.name], add(lock.name, 1));
  });

  it("while a copy of EXEC is under way that arrives later: the outcome is unknown, and happens once", async () => {
    const { far, proxy, lock } = stage;
    const redis = impatient();
    await optimistic(redis, ["warm"], () => {});
    const holding = proxy.holdCommand(named("exec"));
    const error = await failure(optimistic(redis, [lock.name], add(lock.name, 1)));
    expect(error).toMatchObject({ executed: "unknown" });
    expect(await far.redis.get(lock.name)).toBeNull();
    await (await holding).deliver();
    expect(await far.redis.get(lock.name)).toBe("1");
  });
});

describe("Redis does not answer", () => {
  it("any caller: refused connections are retried for 5 s, then it rejects", async ({ annotate }) => {
    const { near, proxy, lock } = stage;
    proxy.refuse(true);
    proxy.cut();
    const call = failure(optimistic(near.redis, [lock.name], () => expect.fail("runs")));
    const [error, took] = await timed(call);
    await annotate(`rejected after ${took} ms`);
    expect(error).toMatchObject({ code: "TRANSACTION_FAILED", executed: "nothing" });
    expect(took).toBeLessThan(15_000);
  });

  it("for a while: the call waits for it", async () => {
    const { near, far, proxy, lock } = stage;
    await warm();
    proxy.refuse(true);
    proxy.cut();
    const connections = vi.spyOn(near.redis, "duplicate");
    const call = optimistic(near.redis, [lock.name], add(lock.name, 1));
    await until(() => connections.mock.calls.length > 3, { what: "some refused connections" });
    proxy.refuse(false);
    await call;
    expect(await far.redis.get(lock.name)).toBe("1");
  });

  it("a new connection: it rejects, and a signal ends it sooner", async ({ annotate }) => {
    const { proxy, lock } = stage;
    const redis = impatient();
    proxy.freeze();
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = failure(optimistic(redis, [lock.name], () => {}, { signal }));
    const call = failure(optimistic(redis, [lock.name], () => {}));
    controller.abort("enough");
    expect(await aborted).toBe("enough");
    const [error, took] = await timed(call);
    await annotate(`rejected after ${took} ms`);
    expect(error).toMatchObject({ executed: "nothing" });
    expect(took).toBeLessThan(15_000);
  });

  it.each([
    ["WATCH", "watch"],
    ["a read", "get"],
  ])("%s of a half-open connection: another connection is used", async (_, command) => {
    const { far, proxy, lock } = stage;
    const redis = impatient();
    await optimistic(redis, [lock.name], (tx) => tx.redis.ping());
    let runs = 0;
    if (command === "watch") proxy.freeze("commands");
    await optimistic(redis, [lock.name], async (tx) => {
      if (runs++ === 0 && command === "get") proxy.freeze("commands");
      await add(lock.name, 1)(tx);
    });
    expect([runs, await far.redis.get(lock.name)]).toEqual([command === "get" ? 2 : 1, "1"]);
  });

  it("EXEC: the outcome is unknown", async () => {
    const { proxy, lock } = stage;
    const redis = impatient();
    const call = optimistic(redis, [lock.name], async (tx) => {
      await add(lock.name, 1)(tx);
      proxy.freeze();
    });
    expect(await failure(call)).toMatchObject({ executed: "unknown" });
  });
});

it("a server that refuses writes is reported, and nothing is half done", async () => {
  const { far, near, lock } = stage;
  await warm();
  const call = optimistic(near.redis, [lock.name], async (tx) => {
    tx.multi.del(lock.name).set(lock.name, 1);
    await far.redis.config("SET", "maxmemory", "1");
  });
  const error = await failure(call).finally(() => far.redis.config("SET", "maxmemory", "0"));
  expect(error).toMatchObject({ executed: "nothing" });
  expect(String(error)).toContain("OOM");
  expect(await far.redis.exists(lock.name)).toBe(0);
});

it("a server that became a replica is abandoned, and nothing is executed there", async () => {
  const { far, near, lock } = stage;
  await warm();
  let runs = 0;
  const connections = new Set<unknown>();
  const call = optimistic(near.redis, [lock.name], async (tx) => {
    connections.add(await tx.redis.client("ID"));
    if (runs++ === 0) await far.redis.replicaof("127.0.0.1", 1);
    else await far.redis.replicaof("NO", "ONE");
    tx.multi.set(lock.name, runs);
  });
  await call.finally(() => far.redis.replicaof("NO", "ONE"));
  expect([runs, connections.size, await far.redis.get(lock.name)]).toEqual([2, 2, "2"]);
});

// Every write goes on from the one before, as the log that is written with it says. What is told as
// done is in the log once, what is told as not executed is not, and what is unknown may be.
it("random cuts and conflicts: no write is lost or doubled", { timeout: 60_000 }, async ({ annotate }) => {
  const { seed, next } = seeded();
  await annotate(`HOLDFAST_SEED=${seed}`);
  const { near, far, proxy, lock } = stage;
  const log = `${lock.name}:log`;
  const told = { done: new Set<string>(), nothing: new Set<string>(), unknown: new Set<string>() };
  let isOver = false;
  const cutting = (async () => {
    while (!isOver) {
      await delay(10 + next() * 40);
      proxy.cut();
    }
  })();
  const call = async (id: string): Promise<void> => {
    const body = async (tx: Transaction<Redis>) => {
      const value = Number(await tx.redis.get(lock.name));
      tx.multi.set(lock.name, value + 1).rpush(log, `${id} ${value} ${value + 1}`);
    };
    try {
      await optimistic(near.redis, [lock.name], body, { retries: 5 });
      told.done.add(id);
    } catch (error) {
      if ((error as TransactionError).executed === "unknown") told.unknown.add(id);
      else told.nothing.add(id);
    }
  };
  const callers = Array.from({ length: 6 }, async (_, caller) => {
    for (let n = 0; n < 60; n++) await call(`${caller}-${n}`);
  });
  await Promise.all(callers);
  isOver = true;
  await cutting;
  const entries = (await far.redis.lrange(log, 0, -1)).map((entry) => entry.split(" "));
  await annotate(
    `${told.done.size} done, ${told.unknown.size} unknown (${entries.filter(([id = ""]) => told.unknown.has(id)).length} of them executed), ${told.nothing.size} not executed`,
  );
  for (const [n, [, from, to]] of entries.entries()) expect([from, to]).toEqual([`${n}`, `${n + 1}`]);
  const ids = entries.map(([id = ""]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect([...told.done].filter((id) => !ids.includes(id))).toEqual([]);
  expect(ids.filter((id) => told.nothing.has(id))).toEqual([]);
  expect(told.done.size).toBeGreaterThan(0);
});
