import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { NotReplicatedError } from "../../src/index.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { Replication } from "../../src/redis/replication.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { countCommands } from "../support/command-count.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { linkOf } from "../support/link.ts";
import { lockOf } from "../support/permit.ts";
import { staysQuiet } from "../support/quiet.ts";
import { named, TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// A caller gets the lock only when so many replicas have it.

const parties = new Parties();
staysQuiet();
let primary: LocalServer;
let replicas: LocalServer[];

beforeAll(async () => {
  primary = await launchServer();
  const of = ["--replicaof", "127.0.0.1", String(primary.port)];
  replicas = await Promise.all([launchServer({ args: of }), launchServer({ args: of })]);
  const { redis } = await parties.join({ url: primary.url });
  await until(async () => (await redis.info("replication")).includes("connected_slaves:2"));
  await until(async () => (await redis.wait(2, 1_000)) === 2);
});
afterEach(async () => {
  for (const replica of replicas) replica.resume();
});
afterAll(async () => {
  await parties.close();
  await Promise.all([primary, ...replicas].map((server) => server?.stop()));
});

it("once waits for the replicas: they have the turn when the body runs; with too few of them it does not run", async () => {
  const { locks } = await join(2);
  const name = freshName();
  const [admin] = replicas.map(({ url }) => new Redis(url));
  onTestFinished(() => admin?.disconnect());
  const there = await locks.runOnce(name, { every: 60_000 }, () => admin?.exists(`holdfast:once:{${name}}`));
  expect(there).toEqual({ ran: true, value: 1 });
  const few = await join(3, 50);
  const other = freshName();
  const run = few.locks.runOnce(other, { every: 60_000 }, () => expect.unreachable());
  await expect(run).rejects.toBeInstanceOf(NotReplicatedError);
  await until(async () => (await few.redis.exists(`holdfast:once:{${other}}`)) === 0);
});

it("remembers a result on as many replicas, or reports that fewer have it", async () => {
  const { locks } = await join(2);
  const admins = replicas.map(({ url }) => new Redis(url));
  onTestFinished(() => admins.forEach((admin) => void admin.disconnect()));
  const name = freshName();
  await locks.remember(name, { keep: 60_000 }, () => 1);
  const key = `holdfast:remember:{${name}}:result`;
  expect(await Promise.all(admins.map((admin) => admin.exists(key)))).toEqual([1, 1]);
  const few = await join(2, 100);
  const errors: unknown[] = [];
  few.locks.on("error", (error) => errors.push(error));
  const other = freshName();
  const result = few.locks.remember(other, { keep: 60_000 }, () => {
    suspend();
    return 2;
  });
  expect(await result).toMatchObject({ value: 2, ran: true });
  expect(errors).toMatchObject([
    { code: "LOCK_NOT_REPLICATED", lockName: other, wanted: 2, acknowledged: 1 },
  ]);
  expect(String(errors[0])).toContain(`The run of '${other}' has stored its result: 1 of 2 replicas`);
  expect(await few.locks.remembered(other)).toMatchObject({ value: 2 });
});

const join = (wanted: number, replicaTimeout = 5_000, url = primary.url) =>
  parties.join({ url, client: { replicas: wanted, replicaTimeout } });

/** Suspends a replica until the test ends. */
function suspend(): void {
  replicas[0]?.suspend();
}

describe.each(["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const)(
  "%s with replicas",
  (kind) => {
    const hasBareKey = kind.startsWith("redisson") || kind === "spinLock";
    const key = (name: string): string => (hasBareKey ? name : `holdfast:{${name}}`);

    it("is on all of them when its caller gets it", async () => {
      const { locks } = await join(2);
      const admins = replicas.map(({ url }) => new Redis(url));
      onTestFinished(() => admins.forEach((admin) => void admin.disconnect()));
      for (let i = 0; i < 20; i++) {
        const name = freshName();
        const lease = await lockOf(locks, kind, name).lock();
        expect(await Promise.all(admins.map((admin) => admin.exists(key(name))))).toEqual([1, 1]);
        await lease.unlock();
      }
    });

    it("is given back if too few have it, by the first caller and by one that waited", async () => {
      const { locks, redis } = await join(2, 100);
      const name = freshName();
      const held = await lockOf(locks, kind, name).lock();
      const other = await join(2, 100);
      const waiter = lockOf(other.locks, kind, name)
        .lock()
        .catch((error: unknown) => error);
      const waits = async () => hasBareKey || (await redis.zcard(`holdfast:{${name}}:queue`)) === 1;
      await until(waits);
      suspend();
      await held.unlock();
      const error = await waiter;
      expect(error).toBeInstanceOf(NotReplicatedError);
      expect(error).toMatchObject({
        code: "LOCK_NOT_REPLICATED",
        lockName: name,
        wanted: 2,
        acknowledged: expect.toSatisfy((count: number) => count <= 1), // the other one may be slow
      });
      await until(async () => (await redis.exists(key(name))) === 0, { timeout: 2_000 });
      await expect(lockOf(locks, kind, name).tryLock()).rejects.toMatchObject({
        code: "LOCK_NOT_REPLICATED",
      });
      await until(async () => (await redis.exists(key(name))) === 0, { timeout: 2_000 });
      // Those who want one replica only get it.
      await (await lockOf((await join(1)).locks, kind, name).lock({ wait: 5_000 })).unlock();
    });
  },
);

it.for(["lock", "fairLock", "redissonLock", "spinLock"] as const)(
  "callers that wait while replicas do not confirm are all answered at once, and not in sequence: %s",
  async (kind) => {
    const { locks } = await join(2, 1_000);
    const lock = lockOf(locks, kind, freshName());
    suspend();
    const told: number[] = [];
    const refused = Array.from({ length: 8 }, () =>
      lock.lock().catch((error: unknown) => {
        told.push(performance.now());
        return error;
      }),
    );
    for (const error of await Promise.all(refused))
      expect(error).toMatchObject({
        code: "LOCK_NOT_REPLICATED",
        lockName: lock.name,
        wanted: 2,
        acknowledged: expect.toSatisfy((count: number) => count <= 1), // the other one may be slow
      });
    // one by one it would be seven times 1 000
    expect(Math.max(...told) - Math.min(...told)).toBeLessThan(3_500);
  },
);

it("a caller that comes during a request to the replicas has a try of its own", async () => {
  const { locks, redis } = await join(2, 1_000);
  const lock = locks.lock(freshName());
  suspend();
  const first = lock.lock().catch((error: unknown) => error);
  await until(async () => /^blocked_clients:[1-9]/m.test(await redis.info("clients")), { what: "WAIT" });
  const second = lock.lock();
  expect(await first).toBeInstanceOf(NotReplicatedError);
  replicas[0]?.resume();
  await (await second).unlock();
});

it("replicas that are slower than the lease: the body does not run without the lock", async () => {
  const { locks } = await join(2, 5_000);
  const name = freshName();
  suspend();
  let held: boolean | null = null;
  const done = locks.lock(name).withLock({ lease: 300, wait: 10_000 }, (lease) => {
    held = lease.held;
  });
  // Their answer comes when somebody else has had the lock already.
  const { locks: rival } = await parties.join({ url: primary.url });
  await (await rival.lock(name).lock()).unlock();
  replicas[0]?.resume();
  await done;
  expect(held).toBe(true);
});

it("a lock that is handed off locally is not confirmed again, because the replicas have it", async () => {
  const { locks, redis } = await join(2);
  const lock = locks.lock(freshName());
  await (await lock.lock()).unlock();
  const confirmed = async (): Promise<number> => {
    const count = await countCommands(redis);
    const lease = await lock.lock();
    const waiting = [1, 2, 3].map(() => lock.lock().then((next) => next.unlock()));
    await lease.unlock();
    await Promise.all(waiting);
    return (await count.since()).wait ?? 0;
  };
  // It is passed on within 25 ms of the grant, which a busy machine may miss.
  await until(async () => (await confirmed()) === 1, {
    what: "a lock that was confirmed once for four callers",
  });
});

it("a WAIT counts only on the connection that wrote", async () => {
  const proxy = await TcpProxy.start(primary);
  onTestFinished(() => proxy.stop());
  const { locks } = await join(2, 5_000, proxy.url);
  const lock = locks.lock(freshName());
  await (await lock.lock()).unlock();
  proxy.record();
  const dropped = proxy.dropCommand(named("wait"));
  const lease = await lock.lock({ wait: 10_000 });
  await dropped;
  const waits = proxy.commands.filter(({ command }) => command[0] === "wait");
  expect(waits.length).toBeGreaterThan(1);
  const wrote = (connection: number, before: object): boolean =>
    proxy.commands.some(
      (one) =>
        one.connection === connection &&
        /^eval/.test(one.command[0] ?? "") &&
        proxy.commands.indexOf(one) < proxy.commands.indexOf(before as typeof one),
    );
  expect(waits.map((wait) => wrote(wait.connection, wait))).not.toContain(false);
  await lease.unlock();
});

it("one failed claim costs later callers nothing", async () => {
  const { redis } = await parties.join({ url: primary.url });
  const names = [freshName(), freshName()] as const;
  for (const name of names)
    await redis.set(name, `10 1800000000000000 1800000000000000 ${name}:1`, "PX", 60_000);
  const replication = new Replication(linkOf(redis), {
    replicas: 2,
    replicaTimeout: 1_000,
    replyTimeout: 5_000,
    prefix: "",
  });
  onTestFinished(() => replication.close());
  const confirm = (name: string, hold: string) =>
    replication.confirm(name, name, (commands) =>
      commands.run(handoffLua.confirm, [name], { hold, ttl: 60_000 }, 1_000),
    );
  for (let i = 0; i < 5; i++) {
    const wrong = confirm(names[0], "somebody else's");
    await Promise.resolve(); // the next one is no part of its batch
    const right = confirm(names[1], `${names[1]}:1`);
    expect([(await wrong).is, (await right).is]).toEqual(["taken", "renewed"]);
  }
});

it("a temporary failure is retried: a WAIT that was ended from outside", async () => {
  const { locks, redis } = await join(2);
  suspend();
  const leasing = locks.lock(freshName()).lock();
  const waiting = () => redis.client("LIST").then((all) => /id=(\d+) .*cmd=wait/.exec(String(all))?.[1]);
  const id = await until(waiting, { what: "a WAIT" });
  await redis.call("CLIENT", "UNBLOCK", id, "ERROR");
  await until(async () => ![undefined, id].includes(await waiting()), { what: "another WAIT" });
  replicas[0]?.resume();
  await (await leasing).unlock();
});

it("a permanent failure is reported: a user without the right to WAIT", async () => {
  const { redis } = await parties.join({ url: primary.url });
  await redis.call("ACL", "SETUSER", "hasty", "on", ">pass", "~*", "&*", "+@all", "-wait");
  const user = { username: "hasty", password: "pass" };
  const { locks } = await parties.join({ url: primary.url, redis: user, client: { replicas: 1 } });
  await expect(locks.lock(freshName()).lock()).rejects.toThrow(/replicas cannot be waited for.*NOPERM/);
});

it("replicas that are slower than the grant window: the turn stays, because Redis had extended the lease in time", async () => {
  const { locks: holders, redis } = await parties.join({ url: primary.url });
  const { locks } = await parties.join({
    url: primary.url,
    client: { replicas: 2, replicaTimeout: 10_000, grantWindow: 900 },
  });
  const name = freshName();
  const held = await holders.lock(name).lock();
  const waiting = locks.lock(name).lock();
  await until(async () => (await redis.zcard(`holdfast:{${name}}:queue`)) === 1);
  suspend();
  await held.unlock();
  const claimed = async () => (await redis.pttl(`holdfast:{${name}}`)) > 20_000;
  await until(claimed, { what: "the claim" });
  const { token } = await holders.lock(name).inspect();
  const start = performance.now();
  await until(() => performance.now() > start + 2 * 900, { what: "the window to pass" });
  replicas[0]?.resume();
  const lease = await waiting;
  expect(lease.token).toBe(token);
  await lease.unlock();
});

it("replicas cost nothing if the option is off: no connection, no command", async () => {
  const { locks, redis } = await parties.join({ url: primary.url });
  await locks.check(); // it has subscribed
  const connections = async () =>
    String(await redis.client("LIST"))
      .trim()
      .split("\n").length;
  const before = await connections();
  const count = await countCommands(redis);
  await (await locks.lock(freshName()).lock()).unlock();
  expect([await count.scripts(), (await count.since()).wait ?? 0, await connections()]).toEqual([
    2,
    0,
    before,
  ]);
});
