import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { isLockLost } from "../../src/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { Connection } from "../support/servers/connection.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { timed } from "../support/stage.ts";
import { keep, LINGERING } from "../support/stays.ts";
import { until } from "../support/until.ts";

// A process keeps a lock although nobody is inside, and the server that has its key is replaced, or
// the key moves.

staysQuiet();

interface Stage {
  readonly keeper: Party;
  readonly other: Party;
  readonly lock: Onlooker;
}

async function keeps(parties: Parties, connect: () => Connection, isCluster: boolean): Promise<Stage> {
  const client = { replyTimeout: 2_000 };
  const keeper = await parties.join({ connect, client: { ...client, ...LINGERING } });
  const other = await parties.join({ connect, client });
  for (const { locks } of [keeper, other]) locks.on("error", () => {});
  const lock = new Onlooker(other.redis, freshName(), { isCluster });
  await keep(keeper, lock.name);
  return { keeper, other, lock };
}

/**
 * The other one gets the lock, and while it has that, the keeper does not believe that it has it;
 * ms that it waited.
 */
async function expectHandOver({ keeper, other, lock }: Stage): Promise<number> {
  const asked = performance.now();
  const lease = await until(() =>
    other.locks
      .lock(lock.name)
      .tryLock(5_000)
      .catch(() => null),
  );
  const waited = performance.now() - asked;
  const beside = keeper.locks.lock(lock.name);
  expect(await beside.tryLock().catch(() => null)).toBeNull();
  expect(lease.held).toBe(true);
  // The new primary may have been without it for a moment, or have forgotten it: then its holder is told.
  await lease.unlock().catch((error: unknown) => {
    if (!isLockLost(error)) throw error;
  });
  const next = await until(() => beside.tryLock(5_000).catch(() => null));
  expect(next.token).toBeGreaterThan(lease.token);
  await next.unlock();
  return waited;
}

describe("Sentinel", () => {
  const parties = new Parties();
  let group: SentinelGroup;
  beforeAll(async () => {
    group = await SentinelGroup.launch();
  });
  afterEach(async () => {
    await parties.close();
    await group.restore();
  });
  afterAll(() => group.stop());

  it.each([
    ["the primary is killed", () => group.killPrimary()],
    ["SENTINEL FAILOVER", () => group.failover()],
  ])(
    "%s: another process gets a cached lock, alone",
    async (_, failOver) => {
      const stage = await keeps(parties, () => group.connect(), false);
      await failOver();
      await expectHandOver(stage);
    },
    60_000,
  );

  it("a failover that forgets a cached lock: no process believes that it has it", async () => {
    const stage = await keeps(parties, () => group.connect(), false);
    const { lock } = stage;
    const primary = await group.adminOf();
    await primary.del(lock.keys.lock);
    await group.killPrimary();
    await expectHandOver(stage);
  }, 60_000);
});

describe("Cluster", () => {
  const parties = new Parties();
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.launch({ replicas: 1 });
  });
  afterEach(async () => {
    await parties.close();
    await cluster.restore();
  });
  afterAll(() => cluster.stop());

  it.each([
    ["the primary is killed", (key: string) => cluster.killPrimaryOf(key)],
    ["CLUSTER FAILOVER", (key: string) => cluster.failOver(key)],
  ] as const)(
    "%s: another process gets a cached lock, alone",
    async (_, failOver) => {
      const stage = await keeps(parties, () => cluster.connect(), true);
      await failOver(stage.lock.keys.lock);
      await expectHandOver(stage);
    },
    60_000,
  );

  it("the slot moves to another primary: another process gets a cached lock, soon", async ({ annotate }) => {
    const stage = await keeps(parties, () => cluster.connect(), true);
    const { lock } = stage.lock.keys;
    const slot = await cluster.slotOf(lock);
    const owner = await cluster.primaryOf(slot);
    const target = (await cluster.primaries()).find(({ id }) => id !== owner.id);
    if (!target) throw new Error("There is one primary only");
    const [, took] = await timed(cluster.migrateSlot(slot, target, async () => {}));
    const waited = await expectHandOver(stage);
    await annotate(`move ${took} ms; another has it after ${Math.round(waited)} ms`);
  }, 60_000);
});
