import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { rights } from "../support/documented-rights.ts";
import { serverIs } from "../support/server-version.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { timedAwake } from "../support/stage.ts";

// What a readiness probe is told: of a sound server nothing, of any other what is wrong and what to do.

/** Keeps a server busy for 50 ms. */
const BUSY = `
  local function at()
    local time = redis.call("TIME")
    return time[1] * 1000 + time[2] / 1000
  end
  local till = at() + 50
  while at() < till do end
`;
let server: LocalServer;
let admin: Redis;

beforeAll(async () => {
  server = await launchServer();
  admin = new Redis(server.url);
});
beforeEach(async () => {
  await admin.config("SET", "maxmemory-policy", "noeviction");
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

function connect(options: { port?: number; username?: string; password?: string } = {}): Redis {
  const redis = new Redis({ host: "127.0.0.1", port: server.port, ...options });
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** `ACL SETUSER` with these rules, and the client of that user. */
async function clientOf(name: string, ...rules: string[]) {
  await admin.call("ACL", "SETUSER", name, "reset", "on", ">secret", ...rules);
  return createLockClient(connect({ username: name, password: "secret" }));
}

describe("check()", () => {
  it("finds no problem with a sound server, and leaves nothing there", async () => {
    const locks = createLockClient(connect());
    const found = await locks.check();
    expect(found).toEqual({
      ok: true,
      problems: [],
      warnings: [expect.stringMatching(/^A restart of .* may lose held locks.*appendonly yes/)],
      unknown: [],
      roundTrip: expect.any(Number),
      servers: [
        {
          place: `127.0.0.1:${server.port}`,
          version: expect.stringMatching(/^(\w+ )?\d+\.\d+\.\d+/),
          roundTrip: found.roundTrip,
          evictionPolicy: "noeviction",
          replicas: 0,
          clockAhead: expect.any(Number),
          problems: [],
        },
      ],
    });
    expect((await Promise.all([locks.check(), locks.check(), locks.check()])).map(({ ok }) => ok)).toEqual([
      true,
      true,
      true,
    ]);
    expect(await admin.keys("*check*")).toEqual([]);
    await locks.close();
    expect(await failure(locks.check())).toMatchObject({ code: "CLIENT_CLOSED" });
  });

  it("names the eviction policy, and missing replicas", async () => {
    const locks = createLockClient(connect());
    await admin.config("SET", "maxmemory-policy", "allkeys-lru");
    const { ok, problems, servers } = await locks.check({ replicas: 2 });
    expect([ok, servers[0]?.evictionPolicy]).toEqual([false, "allkeys-lru"]);
    expect(problems).toEqual([
      expect.stringMatching(/maxmemory-policy allkeys-lru.*noeviction/),
      expect.stringContaining("0 of the 2 replicas"),
    ]);
    await locks.close();
  });

  it("warns before memory or connections run out, and of no persistence, without a problem", async () => {
    const own = await launchServer({ args: ["--maxclients", "10", "--appendonly", "yes"] });
    onTestFinished(() => own.stop());
    const redis = connect({ port: own.port });
    const locks = createLockClient(redis);
    expect((await locks.check()).warnings).toEqual([]); // it has subscribed
    const clients = Array.from({ length: 7 }, () => connect({ port: own.port }));
    await Promise.all(clients.map((one) => one.ping()));
    await redis.set("other", "x".repeat(10_000_000)); // beside it other changes are small
    const used = Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
    await redis.config("SET", "maxmemory", Math.round(used * 1.05));
    await redis.config("SET", "appendonly", "no");
    expect(await locks.check()).toMatchObject({
      ok: true,
      problems: [],
      warnings: [
        expect.stringMatching(/ uses 9\d % of its maxmemory/),
        expect.stringMatching(/ has 90 % of its maxclients/),
        expect.stringContaining("(appendonly no)"),
      ],
    });
    await redis.config("SET", "maxmemory-policy", "allkeys-lru");
    expect((await locks.check()).warnings.join()).not.toContain("maxmemory"); // it evicts, a problem already
    await locks.close();
  });

  it("needs only the rights of docs/operating.md, and names the missing ones", async () => {
    const least = await clientOf("least", ...rights.handoff);
    expect(await least.check()).toMatchObject({ ok: true, problems: [], unknown: [] });
    await least.close();
    const deaf = await clientOf("deaf", ...rights.handoff, "-subscribe");
    deaf.on("error", () => {});
    const { ok, problems } = await deaf.check({ timeout: 1_000 });
    expect([ok, problems]).toEqual([false, [expect.stringMatching(/^Messages do not arrive.*NOPERM/)]]);
    await deaf.close({ grace: 0 });
    const reader = await clientOf("reader", ...rights.handoff, "-set");
    const found = await reader.check({ timeout: 1_000 });
    expect(found.problems).toEqual([
      expect.stringMatching(/^A lock cannot be taken.*(NOPERM|can't run this command)/),
    ]);
    await reader.close({ grace: 0 });
    const blind = await clientOf("blind", ...rights.handoff, "-info");
    const guessed = await blind.check();
    expect(guessed).toMatchObject({
      ok: true,
      problems: [],
      servers: [{ version: null, evictionPolicy: null }],
    });
    expect(guessed.unknown.length).toBe(4);
    expect(guessed.warnings).toEqual([]);
    await blind.close();
  });

  it("ends in time without Redis, and gives the reason", async () => {
    const locks = createLockClient(connect({ port: 1 }));
    const [{ ok, problems, roundTrip }, took] = await timedAwake(locks.check({ timeout: 300 }));
    expect([ok, roundTrip]).toEqual([false, null]);
    expect(problems.at(-1)).toMatch(/127\.0\.0\.1:1 gave no answer.*ECONNREFUSED/);
    expect(took).toBeLessThan(1_500);
    await locks.close();
  });

  it("checks every primary of a Cluster", async () => {
    const cluster = await RedisCluster.launch();
    try {
      const redis = cluster.connect();
      const locks = createLockClient(redis);
      const { ok, problems, servers } = await locks.check({ timeout: 5_000 });
      expect(servers.length).toBe(3);
      if (serverIs("7.0")) expect([problems, ok]).toEqual([[], true]);
      else
        expect([problems.join(), ok]).toEqual([expect.stringContaining("needs Redis 7.0 or later"), false]);
      await locks.close();

      // Closed while its release is unanswered: what comes behind that subscribes to nothing.
      const closed = createLockClient(redis);
      const primaries = redis.nodes("master");
      let closing: Promise<void> | undefined;
      closed.on("release", () => {
        for (const primary of primaries) void primary.eval(BUSY, 0);
        closing = closed.close({ grace: 0 });
      });
      const { problems: found } = await closed.check({ timeout: 5_000 });
      await closing;
      const lists = await Promise.all(primaries.map((primary) => primary.client("LIST")));
      expect([found.join().includes("client is closed"), lists.join().includes("ssub=1")]).toEqual([
        true,
        false,
      ]);
      redis.disconnect();
    } finally {
      await cluster.stop();
    }
  });

  it("accepts a majority of masters, and reports what is wrong with the others", async () => {
    const others = await Promise.all([launchServer(), launchServer()]);
    onTestFinished(async () => void (await Promise.all(others.map((other) => other.stop()))));
    const ports = others.map(({ port }) => port);
    const quorum = (all: number[], options = {}) =>
      createQuorumClient(
        all.map((port) => connect({ port })),
        options,
      );
    const sound = quorum([server.port, ...ports], { restartDelay: 0 });
    expect(await sound.check()).toMatchObject({ ok: true, problems: [] });
    await sound.close();
    const torn = quorum([server.port, ...ports.slice(1), 1], { restartDelay: 0 });
    await torn.check();
    const found = await torn.check({ timeout: 1_000 });
    expect(found.problems).toEqual([
      expect.stringMatching(/^Node 3 \(127\.0\.0\.1:1\) gave no answer.*ECONNREFUSED/),
    ]);
    expect(found.ok).toBe(true);
    await torn.close();
    const twins = quorum([server.port, server.port, ...ports], { restartDelay: 0 });
    twins.on("error", () => {});
    const doubled = await twins.check();
    expect(doubled.ok).toBe(false);
    expect(doubled.problems.join("\n")).toMatch(/Node 1 .* and Node 2 .* are one server/);
    await twins.close();
    const young = quorum([server.port, ...ports]);
    expect((await young.check({ timeout: 800 })).problems.join("\n")).toMatch(
      /restarted \d+ s ago and votes in \d+ s/,
    );
    await young.close({ grace: 0 });
  });

  it("refuses bad options before anything is sent", async () => {
    const locks = createLockClient(connect());
    for (const options of [{ timeout: 0 }, { timeout: 1.5 }, { replicas: -1 }])
      expect(await failure(locks.check(options))).toBeInstanceOf(RangeError);
    for (const options of [{ timeout: "1s" }, { time: 5 }, 5])
      expect(await failure(locks.check(options as object))).toBeInstanceOf(TypeError);
    await locks.close();
  });
});
