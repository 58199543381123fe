import { execFile } from "node:child_process";
import { once } from "node:events";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { optimistic, type Transaction } from "../../src/optimistic/index.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { compiled } from "../support/compiled.ts";
import { connectionIds } from "../support/leaks.ts";
import { until } from "../support/until.ts";
import { sell, transactions } from "./transactions.ts";

// The connections on which transactions run, and the process that has them.

// The timers of clients are no fakes; those of this file may be.
vi.mock("../../src/util/real-timers.ts", async (all) => ({
  ...((await all()) as object),
  setTimeout: (done: () => void, ms: number) => setTimeout(done, ms),
  clearTimeout: (timer: NodeJS.Timeout) => clearTimeout(timer),
}));

let server: LocalServer;
let redis: Redis;
let other: Redis;
let key: string;
const { connect } = transactions((props) => {
  ({ server, redis, other, key } = props);
});

describe("connections", () => {
  it("are reused, and 8 at most, however many callers there are", async () => {
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

  it("close after 10 s without use", async () => {
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

  it("put the caller's keyPrefix before keys, are on the same database, and speak the same protocol", async () => {
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
  /**
   * Runs a script in a process of its own; resolves with how it ended by itself, and the ms since
   * its last word.
   */
  function run(
    script: string,
    ...args: string[]
  ): Promise<{ code: number | null; stdout: string; stderr: string; lag: number }> {
    const prelude = `
      import { Redis } from "ioredis";
      import { optimistic } from "./src/optimistic/index.ts";
      const [url, key] = process.argv.slice(2);
      const redis = new Redis(url);
    `;
    const options = {
      timeout: 60_000,
      killSignal: "SIGKILL",
    } as const;
    const words = [compiled(prelude + script), server.url, ...args];
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
    expect(lag).toBeLessThan(8_000); // idle connections close after 10 s
  });

  it("does not exit during a transaction", async () => {
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
