import type { Cluster } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createLockClient, type Lock } from "../../src/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { Actor } from "../support/actor.ts";
import { Duet } from "../support/duet.ts";
import { freshName } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { ClusterNode } from "../support/servers/cluster-node.ts";
import type { ConnectOptions } from "../support/servers/connection.ts";
import { throughProxies } from "../support/servers/through-proxies.ts";
import { runs, timed, timedAwake } from "../support/stage.ts";
import type { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// The primary of a lock's slot is replaced, or says CLUSTERDOWN, while the lock is held and waited
// for. (Slots that move: migration.faults.test.ts.)

staysQuiet();
let cluster: RedisCluster;
let duet: Duet;

beforeAll(async () => {
  cluster = await RedisCluster.launch({ replicas: 1 });
});
beforeEach(async () => {
  duet = await Duet.of(() => cluster.connect(), { isCluster: true });
});
afterEach(async () => {
  await duet.end();
  await cluster.restore();
});
afterAll(() => cluster.stop());

describe.each([
  ["the primary is killed", true, (key: string): Promise<{ took: number }> => cluster.killPrimaryOf(key)],
  ["CLUSTER FAILOVER", false, (key: string): Promise<{ took: number }> => cluster.failOver(key)],
] as const)("%s", (_, kills, failOver) => {
  it("while the lock is held and waited for: both keep what they have, and messages arrive again", async ({
    annotate,
  }) => {
    const { lock } = duet;
    const { held, waiting } = await duet.begin(await cluster.adminOf(lock.keys.lock));
    const { took } = await failOver(lock.keys.lock);
    expect([held.held, held.signal.aborted]).toEqual([true, false]);
    await held.extend(40_000);
    const { unlocking, waited } = await duet.handOn(held, waiting);
    await annotate(
      `failover ${Math.round(took)} ms; unlock ${unlocking} ms, the waiter has it ${waited} ms later`,
    );
  }, 60_000);

  it("and the lock is released meanwhile: unlock() settles one way or the other, the waiter has it", async ({
    annotate,
  }) => {
    const { lock } = duet;
    const { held, waiting } = await duet.begin(await cluster.adminOf(lock.keys.lock));
    const old = await cluster.primaryOf(lock.keys.lock);
    const failed = failOver(lock.keys.lock);
    await until(() => old.server.state === "ended" || !kills, { what: "the primary to die" });
    const [outcome, took] = await timed(held.unlock().catch((error: unknown) => error));
    const [next, waited] = await timed(waiting);
    await annotate(`unlock() ${took} ms (${outcome}), the waiter has it ${waited} ms later`);
    if (outcome !== undefined)
      expect(outcome).toMatchObject({ code: expect.stringMatching(/^LOCK_(UNAVAILABLE|LOST)$/) });
    expect([next.held, next.token > held.token]).toEqual([true, true]);
    await failed;
    // A failover that takes longer than the grant window lets the waiter's claim come too late.
    const ending = await next.unlock().catch((error: unknown) => error);
    if (ending !== undefined) expect(ending).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await duet.expectMessages();
  }, 60_000);
});

it("an unreadable map of slots is not requested in a storm", async () => {
  const { waiter, lock } = duet;
  const { held, waiting } = await duet.begin();
  const times: number[] = [];
  // Every further connection fails, as at a server that has no more of them.
  vi.spyOn(waiter.redis as unknown as Cluster, "refreshSlotsCache").mockImplementation((told) => {
    times.push(performance.now());
    told?.(new Error("Failed to refresh slots cache."));
  });
  const admin = await cluster.adminOf(lock.keys.lock);
  await admin.call("CLIENT", "KILL", "TYPE", "pubsub");
  await until(() => times.length >= 5, { timeout: 20_000 });
  expect((times[4] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(300); // 25, 50, 100, 200 ms; a storm: 100
  vi.restoreAllMocks();
  await held.unlock();
  await (await waiting).unlock();
});

it("a former primary accepts a SUBSCRIBE as a replica, and the map of slots comes late: the channel moves to its node", async () => {
  const { lock } = duet;
  const proxied = await throughProxies(cluster);
  const near = await Duet.of(() => proxied.connect(), { isCluster: true });
  const held = await redissonLock(duet.holder.locks, lock.name).lock({ lease: 60_000 });
  const waiting = redissonLock(near.waiter.locks, lock.name).lock();
  const heard = async () => {
    const { admin } = await cluster.primaryOf(lock.name);
    const channel = `redisson_lock__channel:{${lock.name}}`;
    return ((await admin.call("PUBSUB", "SHARDNUMSUB", channel)) as unknown[])[1] === 1;
  };
  await until(heard);
  for (const proxy of proxied.proxies) proxy.delay(400, { direction: "to client", which: "commands" });
  await cluster.failOver(lock.name);
  await until(heard, { what: "the channel at its home" });
  for (const proxy of proxied.proxies) proxy.delay(0);
  await held.unlock();
  await (await waiting).unlock();
  await near.end();
  await proxied.stop();
}, 60_000);

it("a waiting process that is killed costs the next one no window", async ({ annotate }) => {
  const { lock, holder, waiter } = duet;
  const held = await holder.locks.lock(lock.name).lock();
  const actor = await Actor.start({ address: cluster.address });
  const dying = actor.call("acquire", "lock", lock.name, 60_000).catch(() => "dead");
  await lock.queued(1);
  const waiting = waiter.locks.lock(lock.name).lock();
  await lock.queued(2);
  actor.kill("SIGKILL");
  await actor.exit;
  expect(await dying).toBe("dead");
  await held.unlock();
  const [next, waited] = await timedAwake(waiting);
  await annotate(`${waited} ms`);
  expect(waited).toBeLessThan(900); // a window is 3 s, a re-check 1.1 s at the least
  await next.unlock();
});

describe("CLUSTERDOWN", () => {
  it("calls fail with typed errors, holders keep their locks, the waiter keeps its place, and work resumes", async ({
    annotate,
  }) => {
    const { lock, holder, waiter } = duet;
    const { held, waiting } = await duet.begin();
    const { primary, replica } = await elsewhere(lock.keys.lock);
    for (const { server } of [primary, replica]) server.suspend(); // some slots have nobody
    const { admin } = await cluster.primaryOf(lock.keys.lock);
    const said = (): Promise<string> => admin.get(lock.keys.lock).then(String, (error) => error.message);
    await until(async () => (await said()).startsWith("CLUSTERDOWN"), { what: "the others to miss them" });
    const [error, took] = await timed(
      waiter.locks
        .lock(lock.name)
        .inspect()
        .catch((reason: unknown) => reason),
    );
    await annotate(`${took} ms until "${error}"`);
    expect(error).toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("CLUSTERDOWN"),
    });
    await expect(holder.locks.lock(freshName()).tryLock()).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
    });
    expect([held.held, held.signal.aborted]).toEqual([true, false]);
    await cluster.restore();
    await held.unlock();
    const [next, waited] = await timed(waiting);
    await annotate(`the waiter has it ${waited} ms after the unlock`);
    expect(next.token).toBeGreaterThan(held.token);
    await next.unlock();
    await duet.expectMessages();
  }, 60_000);

  /** A primary, with its replica, that does not own this key. */
  async function elsewhere(key: string): Promise<{ primary: ClusterNode; replica: ClusterNode }> {
    const owner = await cluster.primaryOf(key);
    const [primary] = (await cluster.primaries()).filter((node) => node !== owner);
    if (primary === undefined) throw new Error("There is one primary only");
    return { primary, replica: await cluster.replicaOf(primary) };
  }
});

describe("ioredis resends, 100 ms later and after newer commands", () => {
  it.each(["release", "acquire"] as const)(
    "%s: later holds of the same client are not touched",
    async (script) => {
      const { lock } = duet;
      const proxied = await throughProxies(cluster);
      const near = await Duet.of(() => proxied.connect(), { isCluster: true });
      const mine = near.holder.locks.lock(lock.name);
      await (await mine.lock()).unlock(); // the node knows the scripts
      const proxy = proxied.proxyOf((await cluster.primaryOf(lock.keys.lock)).server);
      for (let round = 0; round < 3; round++) {
        const dropped = proxy.dropReply(runs(script));
        const first = mine.lock();
        if (script === "acquire") await dropped;
        const unlocked = (await first).unlock().catch((error: unknown) => error);
        const second = await mine.lock(); // it may overtake the copy
        await dropped;
        // Overtaken, the copy cannot tell what has become of the first hold: that is said, and
        // nothing is done.
        const outcome = await unlocked;
        if (outcome !== undefined) expect(outcome).toMatchObject({ code: "LOCK_LOST", reason: "unknown" });
        expect([second.held, (await mine.inspect()).token]).toEqual([true, second.token]);
        await second.unlock();
        expect(await mine.isLocked()).toBe(false);
      }
      await lock.gone();
      await near.end();
      await proxied.stop();
    },
    60_000,
  );

  const own = async (options: ConnectOptions, play: (lock: Lock, proxy: TcpProxy) => Promise<void>) => {
    const { lock } = duet;
    const proxied = await throughProxies(cluster);
    const near = await Duet.of(() => proxied.connect(options), { isCluster: true });
    const mine = near.holder.locks.lock(lock.name);
    await (await mine.lock()).unlock();
    await play(mine, proxied.proxyOf((await cluster.primaryOf(lock.keys.lock)).server));
    await lock.gone();
    await near.end();
    await proxied.stop();
  };

  it("a command is resent too if connections to one server would give it up", async () => {
    await own({ autoResendUnfulfilledCommands: false }, async (mine, proxy) => {
      const dropped = proxy.dropReply(runs("acquire"));
      const lease = await mine.lock();
      await dropped;
      expect(lease.held).toBe(true);
      await lease.unlock();
    });
  }, 60_000);

  it("a command is refused at once if its nodes reconnect by themselves and may not", async () => {
    const cluster = { clusterNodeRetryStrategy: () => 20 };
    await own({ autoResendUnfulfilledCommands: false, cluster }, async (mine, proxy) => {
      const dropped = proxy.dropReply(runs("acquire"));
      const [error, took] = await timed(mine.lock().catch((reason: unknown) => reason));
      await dropped;
      expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
      expect(took).toBeLessThan(1_500); // the reply timeout is 5 s
    });
  }, 60_000);
});

it("many clients on one Cluster have one listener of each kind there and at each node, and none at the end", async () => {
  const redis = cluster.connect() as Cluster;
  await until(() => redis.status === "ready");
  const count = () =>
    [redis, ...redis.nodes()].map((one) =>
      ["close", "ready", "end", "+node"].map((at) => one.listenerCount(at)),
    );
  const before = count();
  const clients = Array.from({ length: 12 }, () => createLockClient(redis));
  expect(
    count()
      .flat()
      .map((many, i) => many - (before.flat()[i] ?? 0)),
  ).not.toContain(2);
  await Promise.all(clients.map((locks) => locks.close()));
  expect(count()).toEqual(before);
});
