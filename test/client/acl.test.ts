import type { Redis } from "ioredis";
import { beforeEach, describe, expect, it } from "vitest";
import { createLockClient, LockUnavailableError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { nodeRedisLike, onNodeRedis } from "../support/carrier.ts";
import { commands, rights } from "../support/documented-rights.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { lockOf } from "../support/permit.ts";
import { serverIs } from "../support/server-version.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { addUser } from "../support/servers/users.ts";
import { until } from "../support/until.ts";
import { useAll } from "./use-all.ts";

// The user of docs/operating.md: each of its rights is needed, and named when it is missing. Redis
// 6.2 cannot look at them ahead; test/client/old-server.test.ts has what is true there.

/** Those that only ioredis sends, which does without, and those that are sent when somebody waits. */
const SCRIPTED = commands.filter((name) => !["info", "subscribe", "unsubscribe"].includes(name));

const own = new OwnServer();
const { parties } = own;

beforeEach(async () => {
  await own.admin.call("ACL", "DELUSER", "holdfast");
  await own.admin.call("ACL", "SETUSER", "holdfast", "on", ">change-me", ...rights.handoff);
  await own.admin.call("ACL", "LOG", "RESET");
  await own.admin.flushall();
  await own.admin.script("FLUSH");
});

/** Connected: a call that does not wait gives a connection that is still being made 500 ms. */
async function join(redis: { keyPrefix?: string } = {}): Promise<Party> {
  const user = { username: "holdfast", password: "change-me", lazyConnect: true };
  const create = (one: Redis) => createLockClient(onNodeRedis ? nodeRedisLike(one, 6) : one);
  const party = await parties.join({ url: own.url, redis: { ...user, ...redis }, create });
  await party.redis.connect();
  return party;
}
const allow = (...more: string[]) => own.admin.call("ACL", "SETUSER", "holdfast", ...more);

describe.skipIf(!serverIs("7.0")).each(["lock", "fairLock"] as const)("%s", (kind) => {
  it("needs the prefix in its key and channel patterns when a key prefix is set", async () => {
    await allow("resetkeys", "~app:holdfast:*", "resetchannels", "&app:holdfast:client:*");
    await useAll(kind, await join({ keyPrefix: "app:" }), await join({ keyPrefix: "app:" }));
  });

  it.each(SCRIPTED)(
    "without %s the lock is not acquired, the error names the right, and nothing is left in Redis",
    async (right) => {
      await allow(`-${right}`);
      const { locks } = await join();
      const error: unknown = await locks[kind](freshName())
        .tryLock(2_000)
        .catch((error: unknown) => error);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toMatch(new RegExp(`NOPERM.*\\b${right.replace("|", " ")}\\b`, "i"));
      expect(await own.admin.keys("*")).toEqual([]);
      // The administrator corrects it, and the same client works.
      await allow(`+${right}`);
      await (await locks[kind](freshName()).lock()).unlock();
    },
  );

  it("without subscribe a waiting caller is refused and leaves no place in the queue", async () => {
    await allow("-subscribe");
    const [a, b] = [await join(), await join()];
    const name = freshName();
    const codes = new Set<string>();
    for (const { locks } of [a, b]) locks.on("error", ({ code }) => codes.add(code));
    const held = await a.locks[kind](name).lock();
    await expect(b.locks[kind](name).lock()).rejects.toThrow(/NOPERM.*subscribe/);
    await until(() => codes.has("NO_MESSAGES"));
    await held.unlock();
    await until(async () => (await own.admin.keys("*")).every((key) => key === "holdfast:clock"));
  });

  it.each([
    ["keys", "resetkeys", /NOPERM.*\bkeys?\b/, []],
    // SUBSCRIBE is refused as well, and that may be read while the caller still waits.
    ["channels", "resetchannels", /NOPERM.*holdfast:client:/, ["NO_MESSAGES"]],
  ])("without the pattern for %s is refused too", async (_, rule, names, mayBeTold) => {
    await allow(rule);
    const { locks } = await join();
    const codes = new Set<string>();
    locks.on("error", ({ code }) => codes.add(code));
    await expect(locks[kind](freshName()).tryLock(30_000)).rejects.toThrow(names);
    expect(await own.admin.keys("*")).toEqual([]);
    expect([...codes].filter((code) => !mayBeTold.includes(code))).toEqual([]);
  });
});

it.skipIf(!serverIs("7.0")).each(SCRIPTED)(
  "remember without %s: the body does not run, the error names the right, and nothing is left in Redis",
  async (right) => {
    await allow(`-${right}`);
    const { locks } = await join();
    const [name, keep] = [freshName(), 60_000];
    const error = await failure(locks.remember(name, { keep, wait: 30_000 }, () => expect.unreachable()));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toMatch(new RegExp(`NOPERM.*\\b${right.replace("|", " ")}\\b`, "i"));
    expect(await own.admin.keys("*")).toEqual([]);
    await allow(`+${right}`);
    expect(await locks.remember(name, { keep }, () => 1)).toMatchObject({ value: 1, ran: true });
  },
);

describe.skipIf(!serverIs("7.0")).each([
  ["redissonLock", rights.redisson, []],
  ["redissonFencedLock", rights.redissonFenced, ["get", "incr"]],
] as const)("%s", (kind, rules, more) => {
  it.each(["pexpire", "del", "set", "publish", "hset", ...more])(
    "without %s no lock without a TTL is left in Redis",
    async (right) => {
      await allow(...rules, `-${right}`);
      const { locks } = await join();
      await expect(lockOf(locks, kind, freshName()).tryLock(30_000)).rejects.toThrow(
        new RegExp(`NOPERM.*\\b${right}\\b`),
      );
      expect(await own.admin.keys("*")).toEqual([]);
    },
  );
});

describe.skipIf(!serverIs("7.0"))("in Cluster", () => {
  it("without ssubscribe a client that waits for its own lock does not re-check in a loop", async () => {
    const cluster = await RedisCluster.launch();
    try {
      const user = await addUser(cluster, "~*", "&*", "+@all", "-ssubscribe");
      const { locks } = await parties.join({
        connect: () => cluster.connect(user),
        client: { leaseTime: 6_000 },
      });
      let told = 0;
      locks.on("error", ({ code }) => {
        if (code === "NO_MESSAGES") told++;
      });
      const lock = locks.lock(freshName());
      const held = await lock.lock();
      let isWaiting = true;
      // Told so when it has to queue, which can be before unlock() is answered.
      const next = lock
        .lock()
        .catch(() => null)
        .finally(() => {
          isWaiting = false;
        });
      await new Promise<void>((renewed) => locks.once("renew", () => renewed())); // 2 s: seven looks
      const refused = async () => {
        const infos = (await cluster.admins()).map((node) => node.info("commandstats"));
        const counts = /cmdstat_ssubscribe:.*rejected_calls=(\d+)/.exec(
          (await Promise.all(infos)).join("\n"),
        );
        return Number(counts?.[1] ?? 0);
      };
      expect(await refused()).toBeLessThanOrEqual(2); // its own, and that of the new connection
      expect(isWaiting).toBe(true);
      expect(told).toBe(1);
      await held.unlock();
      await (await next)?.unlock();
      await parties.close();
    } finally {
      await cluster.stop();
    }
  });

  it.each(["lock", "redissonLock", "redissonFencedLock"] as const)(
    "%s needs only the documented rights",
    async (kind) => {
      const cluster = await RedisCluster.launch();
      try {
        const { username, password } = await addUser(
          cluster,
          ...rights.redissonFenced,
          ...rights.cluster,
          ...rights.replicas,
        );
        const connect = () => cluster.connect({ username, password });
        const unasked = { redis: { lazyConnect: true } }; // no PING, which is no right of theirs
        const a = await parties.join({ connect, ...unasked });
        await useAll(kind, a, await parties.join({ connect, ...unasked }));
        // A WAIT that is allowed finds no replicas here. With node-redis `replicas` is refused in Cluster.
        if (!onNodeRedis) {
          // It connects by its first command, which takes more than `tryLock()` waits on a busy machine.
          const client = { replicas: 1, replicaTimeout: 50, replyTimeout: 30_000 };
          const b = await parties.join({ connect, ...unasked, client });
          await expect(lockOf(b.locks, kind, freshName()).tryLock(30_000)).rejects.toMatchObject({
            code: "LOCK_NOT_REPLICATED",
          });
        }
        for (const node of await cluster.admins()) expect(await node.call("ACL", "LOG")).toEqual([]);
        await parties.close();
      } finally {
        await cluster.stop();
      }
    },
  );
});
