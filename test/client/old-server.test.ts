import { describe, expect, it, onTestFinished } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { failure } from "../contract/observe.ts";
import { rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { serverIs } from "../support/server-version.ts";
import { RedisCluster } from "../support/servers/cluster.ts";

// What Redis 6.2 lacks: the look at the rights ahead, and sharded messages.

const own = new OwnServer();
const { parties } = own;

describe.skipIf(serverIs("7.0"))("before Redis 7.0", () => {
  it.each(["get", "set", "time"])("without %s a call that would wait for a lock rejects", async (right) => {
    const user = await own.addUser(...rights.handoff);
    await own.admin.call("ACL", "SETUSER", user.username, `-${right}`);
    const { locks } = await parties.join({ url: own.url, redis: { ...user, lazyConnect: true } });
    const error = await failure(locks.lock(freshName()).lock());
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toMatch(/can't run this command/);
    await own.admin.call("ACL", "SETUSER", user.username, `+${right}`);
    await (await locks.lock(freshName()).lock()).unlock();
  });

  it("in Cluster a lock that needs sharded messages is refused before anything is written", async () => {
    const cluster = await RedisCluster.launch();
    onTestFinished(() => cluster.stop());
    const { locks } = await parties.join({ connect: () => cluster.connect() });
    const name = freshName();
    const all = [
      () => locks.lock(name).lock(),
      () => locks.lock(name).lock(), // and again: refusing once is not forgotten
      () => locks.fairLock(name).tryLock(),
      () => redissonLock(locks, name).lock(),
      () => redissonFencedLock(locks, name).tryLock(),
    ];
    for (const take of all) {
      const error = await failure(take());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toMatch(/in Cluster this lock needs Redis 7\.0 or later, for sharded messages/);
    }
    for (const node of await cluster.admins()) expect(await node.keys("*")).toEqual([]);
    await (await spinLock(locks, name).lock()).unlock();
    await parties.close();
  });
});

// Everywhere, and most of all where a script cannot raise an error of its own making.
it("a lock key of another type is named in an error, and stays as it was", async () => {
  const { locks } = await parties.join({ url: own.url });
  const name = freshName();
  for (const write of [
    () => own.admin.set(`holdfast:{${name}}`, "text"),
    () => own.admin.rpush(`holdfast:{${name}}`, 1),
  ]) {
    await write();
    const error = await failure(locks.lock(name).tryLock());
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toMatch(/WRONGTYPE/);
    expect(await own.admin.exists(`holdfast:{${name}}`)).toBe(1);
    await own.admin.del(`holdfast:{${name}}`);
  }
});
