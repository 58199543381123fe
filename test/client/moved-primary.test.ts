import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { Redis as Redis6 } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { afterAll, describe, expect, it } from "vitest";
import { createLockClient, type LockError, type NodeRedisLike, type RedisLike } from "../../src/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { inTurn } from "../support/in-turn.ts";
import { openNodeRedis } from "../support/node-redis.ts";
import { until } from "../support/until.ts";

// A managed failover: the name leads to the new primary, and the old one stays, as its replica, with
// every connection that it had.

const parties = new Parties();
const undo: (() => unknown)[] = [];
// They run side by side, so all ends when all have ended.
afterAll(async () => {
  for (const one of undo.splice(0).reverse()) await one();
  await parties.close();
});

/** A name that leads to one of two servers. */
async function launchPair() {
  const [old, next] = await Promise.all([launchServer(), launchServer()]);
  undo.push(() => Promise.all([old.stop(), next.stop()]));
  const [oldAdmin, nextAdmin] = [old, next].map(({ url }) => new Redis6(url)) as [Redis6, Redis6];
  undo.push(() => [oldAdmin, nextAdmin].map((admin) => admin.disconnect()));
  await follows(nextAdmin, old);
  let target = old;
  const name = createServer((socket) => {
    const redis = connect(target.port, "127.0.0.1").on("error", () => {});
    socket.on("error", () => {}).on("close", () => redis.destroy());
    redis.on("close", () => socket.destroy());
    socket.pipe(redis).pipe(socket);
  }).listen(0, "127.0.0.1");
  await once(name, "listening");
  undo.push(() => name.close());
  return {
    port: (name.address() as AddressInfo).port,
    next,
    async failOver() {
      // The new one has all that was written before.
      await oldAdmin.set("before", "");
      await oldAdmin.wait(1, 0);
      await nextAdmin.replicaof("NO", "ONE");
      await follows(oldAdmin, next);
    },
    moveName() {
      target = next;
    },
  };
}

async function follows(admin: Redis6, { port }: LocalServer): Promise<void> {
  await admin.replicaof("127.0.0.1", port);
  await until(async () => (await admin.info("replication")).includes("master_link_status:up"));
}

type Open = (port: number) => RedisLike | NodeRedisLike;
const onIoredis =
  (Redis: typeof Redis6): Open =>
  (port) => {
    const redis = new Redis({ port, host: "127.0.0.1" });
    redis.on("error", () => {});
    undo.push(() => redis.disconnect());
    return redis as unknown as RedisLike;
  };
const onNodeRedis =
  (version: 5 | 6): Open =>
  (port) => {
    const client = openNodeRedis(version, { port });
    undo.push(() => client.destroy());
    return client as unknown as NodeRedisLike;
  };

const taken = (locks: ReturnType<typeof createLockClient>) =>
  until(() =>
    locks
      .lock(freshName())
      .tryLock()
      .catch(() => null),
  );

/** Why a call without wait fails: on a busy machine, also because it was not answered in time. */
async function refusal(locks: ReturnType<typeof createLockClient>): Promise<string> {
  const error = (await failure(locks.lock(freshName()).tryLock())) as LockError;
  return error.message;
}

describe.concurrent.each(
  inTurn<[string, Open, RegExp]>([
    ["ioredis 6", onIoredis(Redis6), /reconnectOnError/],
    ["ioredis 5", onIoredis(Redis5 as never), /reconnectOnError/],
    ["node-redis 6", onNodeRedis(6), /destroy\(\) this client and connect\(\) it again/],
    ["node-redis 5", onNodeRedis(5), /destroy\(\) this client and connect\(\) it again/],
  ]),
)("%s: the primary became a replica, and its name leads to the new one", (_, open, advice) => {
  it("the client's own connections go there by themselves, and a lease is kept", async () => {
    const pair = await launchPair();
    const locks = createLockClient(open(pair.port), { connection: "own" });
    undo.push(() => locks.close({ grace: 0 }));
    const losses: unknown[] = [];
    locks.on("lost", (event) => losses.push(event)).on("error", () => {});
    let waits = 0;
    locks.on("wait", () => waits++);
    await (await taken(locks)).unlock();
    const kept = await locks.lock(freshName()).lock();
    const busy = freshName();
    const { locks: before } = await parties.join({ url: `redis://127.0.0.1:${pair.port}` });
    const held = await before.lock(busy).lock({ lease: 60_000 });
    const waiting = locks.lock(busy).lock();
    waiting.catch(() => {});
    await until(async () => waits === 1 && (await locks.check()).problems.length === 0);
    await pair.failOver();
    // The name still leads to the old one.
    await until(async () => /is a replica.*the client connects again.*READONLY/.test(await refusal(locks)));
    pair.moveName();
    await (await taken(locks)).unlock();
    // Messages come from the new one: a waiter of another process is woken by them.
    await until(async () => (await locks.check()).problems.length === 0);
    const { locks: others } = await parties.join({ url: pair.next.url });
    const own = await locks.lock(freshName()).lock();
    const handed = others.lock(own.name).lock();
    handed.catch(() => {});
    await others.lock(busy).forceUnlock();
    await (await waiting).unlock();
    await own.unlock();
    await (await handed).unlock();
    await kept.extend(30_000);
    await kept.unlock();
    expect(losses).toEqual([]);
    await failure(held.unlock());
  });

  it("a call on the application's connection says what check() says, and how the library leaves it", async () => {
    const pair = await launchPair();
    const locks = createLockClient(open(pair.port));
    undo.push(() => locks.close({ grace: 0 }));
    await (await taken(locks)).unlock();
    await pair.failOver();
    pair.moveName();
    const says = "is a replica, which takes no writes: connect to the primary";
    const message = await until(async () => {
      const refused = await refusal(locks);
      return refused.includes(says) && refused;
    });
    expect(message).toMatch(advice);
    await until(async () => (await locks.check()).problems.join().includes(says));
  });
});
