import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { fencedEval, fencedSet } from "../../src/fencing/index.ts";
import {
  createLockClient,
  type LockClient,
  type LockClientOptions,
  LockUnavailableError,
  type NodeRedisLike,
} from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { redissonFencedLock } from "../../src/redisson.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { createLockUI, observe } from "../../src/tools/ui/index.ts";
import { nodeRedisLike } from "../support/carrier.ts";
import { Cli } from "../support/cli.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { inTurn } from "../support/in-turn.ts";
import { OwnServer } from "../support/own-server.ts";
import type { Maker } from "../support/permit.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { serverIs } from "../support/server-version.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { addUser } from "../support/servers/users.ts";
import { until } from "../support/until.ts";
import { useAll } from "./use-all.ts";

// What a Redis user may do who has the keys and channels of one tenant only. A deadlock is found after
// 200 ms instead of 5 s.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const own = new OwnServer();
const { parties } = own;
const prefix = "tenant1:";
const DRIVERS = ["ioredis", "node-redis 5", "node-redis 6"] as const;
type Driver = (typeof DRIVERS)[number];

const carrierOf = (redis: Redis, driver: Driver): Redis | NodeRedisLike =>
  driver === "ioredis" ? redis : nodeRedisLike(redis, driver === "node-redis 5" ? 5 : 6);

interface Tenant extends Party {
  readonly given: Redis | NodeRedisLike;
}

/** A client of a user with the tenant's keys and channels, and with these more. */
async function tenant(driver: Driver, client: LockClientOptions = {}, more: readonly string[] = []) {
  const user = await own.addUser(`~${prefix}*`, `&${prefix}*`, "+@all", ...more);
  return join(driver, { prefix, ...client }, user);
}

async function join(driver: Driver, client: LockClientOptions, redis: object = {}): Promise<Tenant> {
  let given: Redis | NodeRedisLike | undefined;
  const create = (one: Redis): LockClient => {
    given = carrierOf(one, driver);
    return createLockClient(given, client);
  };
  const party = await parties.join({ url: own.url, redis, create });
  // Connected, as a call that does not wait wants it.
  await until(() => (given as { isReady?: boolean }).isReady ?? true);
  return { ...party, given: given as Redis | NodeRedisLike };
}

beforeEach(async () => {
  await own.admin.flushall();
  await own.admin.call("ACL", "LOG", "RESET");
  onTestFinished(async () => {
    expect((await own.admin.keys("*")).filter((key) => !key.startsWith(prefix))).toEqual([]);
  });
});

const refusals = (): Promise<unknown> => own.admin.call("ACL", "LOG");

describe.skipIf(!serverIs("7.0")).each(inTurn(DRIVERS))(
  "with %s a user of one prefix's keys and channels",
  (driver) => {
    it.each<[Maker, readonly string[]]>([
      ["lock", []],
      ["fairLock", []],
      ["spinLock", []],
      ["permit", []],
      ["writeLock", []],
      ["redissonLock", [`&redisson_lock__channel:{${prefix}*`]], // Java's name
    ])("may use %s", async (kind, more) => {
      await useAll(kind, await tenant(driver, {}, more), await tenant(driver, {}, more));
      expect(await refusals()).toEqual([]);
    });

    it("may cache and recall a lock, list, check, and find a deadlock", async () => {
      const [a, b] = [
        await tenant(driver, { linger: 1_000, deadlocks: "reject" }),
        await tenant(driver, { deadlocks: "reject" }),
      ];
      const [one, other] = [freshName("a"), freshName("b")];
      await until(async () => {
        await a.locks.lock(one).withLock(() => {});
        return a.locks.stats().kept === 1;
      });
      expect(await b.locks.lock(one).recall()).toBe("released");
      const ends = await Promise.allSettled([
        a.locks.lock(one).withLock(async () => {
          await until(() => b.locks.lock(other).isLocked());
          await a.locks.lock(other).withLock(() => {});
        }),
        b.locks.lock(other).withLock(async () => {
          await until(() => a.locks.lock(one).isLocked());
          await b.locks.lock(one).withLock(() => {});
        }),
      ]);
      expect(ends.flatMap((end) => (end.status === "rejected" ? [end.reason.code] : []))).toEqual([
        "DEADLOCK",
      ]);
      const held = await a.locks.lock(one).lock();
      const slots = await b.locks.semaphore(other, { permits: 2 }).acquire();
      const names: string[] = [];
      for await (const { name } of b.locks.list()) names.push(name);
      expect(names.sort()).toEqual([one, other].sort());
      expect(await b.locks.check()).toMatchObject({ ok: true, problems: [] });
      await held.unlock();
      await slots.release();
      expect(await refusals()).toEqual([]);
    });

    it("may run once, elect, and observe the leader", async () => {
      const [a, b] = [(await tenant(driver)).locks, (await tenant(driver)).locks];
      const name = freshName();
      expect(await a.runOnce(name, { every: 60_000 }, () => "done")).toEqual({ ran: true, value: "done" });
      expect(await b.runOnce(name, { every: 60_000 }, () => "done")).toMatchObject({ ran: false });
      const seen = b.election(name).observe();
      expect((await seen.next()).value).toBeNull();
      const term = await a.election(name).campaign({ value: "a" });
      expect((await seen.next()).value).toMatchObject({ value: "a" });
      const next = b.election(name).campaign({ value: "b" });
      await until(async () => (await own.admin.exists(`${prefix}holdfast:election:{${name}}:queue`)) === 1);
      await term.resign();
      await (await next).resign();
      await seen.return?.();
      expect(await refusals()).toEqual([]);
    });

    it("may write behind a fence", async () => {
      const { given } = await tenant(driver);
      const fence = Date.now() * 1_000;
      await fencedSet(given, "order:42", "a", { fence, prefix });
      await fencedEval(given, "return redis.call('SET', KEYS[1], 'b')", {
        keys: ["order:42"],
        fence,
        prefix,
      });
      await expect(fencedSet(given, "order:42", "c", { fence: fence - 1, prefix })).rejects.toMatchObject({
        code: "STALE_TOKEN",
      });
      expect(await own.admin.get(`${prefix}order:42`)).toBe("b");
      expect(await own.admin.exists(`${prefix}holdfast:fence:order:42`)).toBe(1);
      expect(await refusals()).toEqual([]);
    });

    it("sees waits and locks on the page", async () => {
      const { locks, given } = await tenant(driver);
      const name = freshName();
      const stop = observe(locks, given);
      const held = await locks.lock(name).lock();
      const waiting = locks.lock(name).lock();
      await held.unlock();
      const next = await waiting;
      await until(async () => (await own.admin.exists(`${prefix}holdfast:observed`)) === 1);
      stop();
      const ui = createLockUI({ locks, redis: given, authorize: () => true });
      const answer = await ui.fetch(new Request("http://x/?part=state&view=wait-times"));
      const shown = await (answer as Response).text();
      expect(JSON.parse(shown)).toMatchObject({ trouble: null, unread: null });
      expect(shown).toContain(name);
      ui.close();
      await next.unlock();
      expect(await refusals()).toEqual([]);
    });

    it("is told which keys and channels it lacks, by a call and by check()", async () => {
      const { locks } = await tenant(driver, { prefix: "tenant2:" });
      locks.on("error", () => {}); // NO_MESSAGES
      const name = freshName();
      const error = await locks
        .lock(name)
        .tryLock()
        .catch((error: unknown) => error);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toContain(`'tenant2:holdfast:{${name}}'`);
      expect((await locks.check()).problems.join()).toContain("'tenant2:holdfast:{");
      const { locks: deaf } = await tenant(driver, { prefix: "tenant2:" }, ["~tenant2:*"]);
      deaf.on("error", () => {}); // NO_MESSAGES
      await expect(deaf.lock(name).tryLock()).rejects.toThrow("publish tenant2:holdfast:client:");
      expect((await deaf.check()).problems.join()).toContain("tenant2:holdfast:client:");
    });
  },
);

describe.each(DRIVERS)("with %s", (driver) => {
  it.each([
    ["a keyPrefix of ioredis", { keyPrefix: "app:é {x}:" }, {}],
    ["a keyPrefix and a prefix", { keyPrefix: "app:é " }, { prefix: "{x}:" }],
  ])("a prefix and %s that are the same together name the same lock", async (_, redis, options) => {
    onTestFinished(async () => void (await own.admin.flushall()));
    const a = await join(driver, { prefix: "app:é {x}:" });
    const b = await join("ioredis", options, redis);
    const name = freshName();
    await useAll("lock", a, { ...b, locks: b.locks });
    const held = await a.locks.lock(name).lock();
    expect(await b.locks.lock(name).tryLock()).toBeNull();
    expect((await b.locks.lock(name).inspect()).token).toBe(held.token);
    const next = b.locks.lock(name).lock();
    await until(async () => (await a.locks.lock(name).inspect()).waiters?.length === 1);
    await held.unlock();
    await (await next).unlock();
    const others = await join(driver, { prefix: "other:" });
    const mine = await a.locks.lock(name).lock();
    await (await others.locks.lock(name).lock()).unlock();
    await mine.unlock();
    expect((await own.admin.keys("*")).filter((key) => !/^(app:é \{x\}:|other:)/.test(key))).toEqual([]);
  });
});

it.each([
  ["", RangeError],
  ["\ud800", RangeError],
  ["x".repeat(513), RangeError],
  [7, TypeError],
  [null, TypeError],
])("refuses the prefix %j", async (wrong, kind) => {
  const redis = new Redis({ lazyConnect: true });
  const options = { prefix: wrong } as object;
  const fence = { ...options, fence: 1 } as never;
  for (const make of [
    () => createLockClient(redis, options),
    () => createQuorumClient([redis, redis, redis], options),
    () => createTestLocks(options),
  ]) {
    expect(make).toThrow(kind);
    expect(make).toThrow(/prefix must be a well-formed string of 1 to 512 bytes/);
  }
  await expect(fencedSet(redis, "key", "value", fence)).rejects.toThrow(/prefix must be/);
});

it("a prefix of its own keeps locks of test clients apart", async () => {
  const locks = createTestLocks({ prefix: "a:" });
  const same = locks.test.another();
  const other = locks.test.another({ prefix: "b:" });
  const held = await locks.lock("order:42").lock();
  expect(await same.lock("order:42").tryLock()).toBeNull();
  await (await other.lock("order:42").lock()).unlock();
  const next = same.lock("order:42").lock();
  await held.unlock();
  const last = await next;
  const names: string[] = [];
  for await (const { name } of same.list()) names.push(name);
  expect(names).toEqual(["order:42"]);
  await last.unlock();
  for (const one of [locks, same, other]) await one.close();
});

it("redissonFencedLock refuses a prefix, with which Java would not find the token counter", async () => {
  const { locks } = await join("ioredis", { prefix });
  expect(() => redissonFencedLock(locks, "order:42")).toThrow(
    /prefix 'tenant1:'.*token counter of 'order:42'/,
  );
});

describe.skipIf(!serverIs("7.0"))("the command line with --prefix, as a user of that prefix's keys", () => {
  it.each(["run NAME -- true", "ls", "inspect HELD", "break --yes HELD", "doctor", "top --json"])(
    "may use %s",
    async (line) => {
      const { locks } = await join("ioredis", { prefix });
      const held = await locks.lock(freshName()).lock();
      const user = await own.addUser(`~${prefix}*`, `&${prefix}*`, "+@all");
      const url = own.url.replace("://", `://${user.username}:${user.password}@`);
      const names: Record<string, string> = { NAME: freshName(), HELD: held.name };
      const [command = "", ...args] = line.split(" ").map((word) => names[word] ?? word);
      const { code, stdout, stderr } = await new Cli(url, [command, "--prefix", prefix, ...args]).finished;
      expect({ code, stdout, stderr }).toMatchObject({
        code: 0,
        stdout: expect.not.stringMatching(/✘|^\?/m),
      });
      if (line === "ls") expect(stdout).toContain(held.name);
      expect(await refusals()).toEqual([]);
      await held.unlock().catch(() => {}); // force-released
    },
  );
});

describe.skipIf(!serverIs("7.0"))("in Cluster, a user of one prefix's keys", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.launch();
  });
  afterAll(async () => {
    await parties.close();
    await cluster.stop();
  });

  describe.each(inTurn(DRIVERS))("with %s", (driver) => {
    it.each<Maker>(["lock", "permit", "writeLock"])("may use %s", async (kind) => {
      const user = await addUser(cluster, `~${prefix}*`, `&${prefix}*`, "+@all");
      const create = (redis: Redis) =>
        createLockClient(carrierOf(redis, driver), { prefix }) satisfies LockClient;
      const [a, b] = [
        await parties.join({ connect: () => cluster.connect(user), create }),
        await parties.join({ connect: () => cluster.connect(user), create }),
      ];
      await useAll(kind, a, b);
      for (const node of await cluster.admins()) {
        expect((await node.keys("*")).filter((key) => !key.startsWith(prefix))).toEqual([]);
        expect(await node.call("ACL", "LOG")).toEqual([]);
      }
    });
  });
});

describe.skipIf(!serverIs("7.0"))("at each master of a quorum", () => {
  const stage = new QuorumStage(3);

  it.each(DRIVERS)("with %s a user of one prefix's keys may use its locks", async (driver) => {
    const client = async () => {
      const nodes: Redis[] = [];
      for (const node of [1, 2, 3]) {
        await stage.admin(node).call("ACL", "LOG", "RESET");
        const topology = { admins: async () => [stage.admin(node)] };
        const user = await addUser(topology, `~${prefix}*`, `&${prefix}*`, "+@all");
        nodes.push(new Redis({ port: stage.server(node).port, ...user }));
      }
      const given = nodes.map((redis) => carrierOf(redis, driver)) as Redis[];
      const locks = createQuorumClient(given, { restartDelay: 0, prefix });
      onTestFinished(async () => {
        await locks.close({ grace: 0 });
        for (const redis of nodes) redis.disconnect();
      });
      return locks;
    };
    const [a, b] = [await client(), await client()];
    const held = await a.lock(stage.name).lock({ wait: 5_000 });
    const waiter = b.lock(stage.name).lock();
    await held.extend(40_000);
    expect((await b.lock(stage.name).inspect()).token).toBe(held.token);
    await held.unlock();
    await (await waiter).unlock();
    expect(await a.check()).toMatchObject({ ok: true, problems: [] });
    for (const node of [1, 2, 3]) {
      const keys = await stage.admin(node).keys("*");
      expect(keys.filter((key) => !key.startsWith(prefix))).toEqual([]);
      expect(await stage.admin(node).call("ACL", "LOG")).toEqual([]);
    }
  });
});
