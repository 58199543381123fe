import { readFile } from "node:fs/promises";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { launchWithClock } from "../server-clock.ts";
import { ALLOW_DEBUG, pauseClients, sleep, unpauseClients } from "../server-pauses.ts";
import { until } from "../until.ts";

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function launch(...args: string[]): Promise<LocalServer> {
  const server = await launchServer({ args });
  cleanups.push(() => server.stop());
  return server;
}

function connectTo(server: LocalServer): Redis {
  const redis = new Redis(server.url, { retryStrategy: () => 10 });
  redis.on("error", () => {});
  cleanups.push(() => redis.disconnect());
  return redis;
}

const timed = async (work: Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work;
  return performance.now() - start;
};

describe("a server that is suspended", () => {
  it("keeps its connections and answers nothing until it is resumed", async () => {
    const server = await launch();
    const redis = connectTo(server);
    await redis.set("n", "1");
    server.suspend();
    expect(server.state).toBe("suspended");
    let isAnswered = false;
    const reply = redis.incr("n").finally(() => {
      isAnswered = true;
    });
    const isStopped = async () => /^State:\s+T/m.test(await readFile(`/proc/${server.pid}/status`, "utf8"));
    if (process.platform === "linux") await until(isStopped);
    for (let n = 0; n < 30; n++) await new Promise(setImmediate);
    expect([isAnswered, redis.status]).toEqual([false, "ready"]);
    server.resume();
    expect([await reply, server.state]).toEqual([2, "running"]);
  });

  it("can be ended gently, and started again without data", async () => {
    const server = await launch();
    const redis = connectTo(server);
    await redis.set("n", "1");
    server.suspend();
    await server.kill("SIGTERM");
    expect(server.state).toBe("ended");
    server.suspend(); // nothing to suspend
    expect(server.state).toBe("ended");
    await server.restart();
    expect([server.state, await redis.dbsize()]).toEqual(["running", 0]);
  });
});

describe("a server that pauses", () => {
  it("pauseClients: all commands, or those that write", async () => {
    const server = await launch();
    const [redis, admin] = [connectTo(server), connectTo(server)];
    await Promise.all([redis.set("a", "1"), admin.ping()]);
    await pauseClients(admin, 500);
    expect(await timed(redis.get("a"))).toBeGreaterThan(250); // part of it is over

    await pauseClients(admin, 60_000, "WRITE");
    let isWritten = false;
    const write = redis.set("a", "2").then(() => {
      isWritten = true;
    });
    expect(await admin.get("a")).toBe("1");
    expect(isWritten).toBe(false);
    await unpauseClients(admin);
    await write;
    expect(await admin.get("a")).toBe("2");
  });

  it("sleep: the server reads nothing", async () => {
    const server = await launch(...ALLOW_DEBUG);
    const [redis, admin] = [connectTo(server), connectTo(server)];
    await Promise.all([redis.ping(), admin.ping()]);
    const asleep = sleep(admin, 500);
    await new Promise(setImmediate); // sent
    expect(await timed(Promise.all([asleep, redis.ping()]))).toBeGreaterThan(250); // part of it is over
  });
});

describe("a server whose clock runs at another rate", () => {
  it.each([3, 0.4])("runs %f times as fast, and continues from there after a restart", async (rate) => {
    const { server, clock } = await launchWithClock({ rate });
    cleanups.push(() => server.stop());
    const redis = connectTo(server);
    /**
     * The server's error about the clock, in ms: the time that a busy machine takes to start a
     * process, times the rate.
     */
    const error = async () => {
      const [seconds, micros] = await redis.time();
      return Math.abs(Number(seconds) * 1_000 + Number(micros) / 1_000 - Date.now() - clock.ahead);
    };
    await until(() => Math.abs(clock.ahead) > 2_000);
    expect(await error()).toBeLessThan(1_000);
    await server.restart();
    expect(Math.abs(clock.ahead)).toBeGreaterThan(1_900);
    expect(await error()).toBeLessThan(1_000);
    clock.jump(-3_600_000);
    expect(await error()).toBeLessThan(1_000);
  });
});

describe("a server whose clock jumps", () => {
  it("TIME and the expiry of keys follow it, there and back", async () => {
    const { server, clock } = await launchWithClock();
    cleanups.push(() => server.stop());
    const redis = connectTo(server);
    const ahead = async () => Number((await redis.time())[0]) - Date.now() / 1_000;

    expect(Math.abs(await ahead())).toBeLessThan(5);
    await redis.set("lease", "me", "PX", 60_000);
    clock.jump(3_600_000);
    expect(Math.abs((await ahead()) - 3_600)).toBeLessThan(5);
    expect(await redis.get("lease")).toBeNull();
    await redis.set("lease", "me", "PX", 60_000);
    clock.jump(-7_200_000);
    expect([clock.ahead, Math.abs((await ahead()) + 3_600) < 5]).toEqual([-3_600_000, true]);
    expect(await redis.pttl("lease")).toBeGreaterThan(7_200_000); // it stays two hours longer
    clock.jump(3_600_500);
    expect(clock.ahead).toBe(500);
    await server.restart();
    expect(await redis.set("lease", "me", "PX", 1)).toBe("OK");
  });
});
