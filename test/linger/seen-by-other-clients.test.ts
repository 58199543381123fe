import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Lock } from "../../src/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { OwnServer } from "../support/own-server.ts";
import { serverIs } from "../support/server-version.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { keep, PAYS } from "../support/stays.ts";
import { until } from "../support/until.ts";

// A lock that a client keeps with nobody inside, as another client sees it that does not wait for it.

// And a caller that is inside for 100 ms on a busy machine has not come to stay.
vi.mock("../../src/defaults.ts", async (all) =>
  (await import("../support/patience.ts")).patient(all, { CLAIM_AFTER: 1_500 }),
);

const own = new OwnServer();

interface Scene {
  readonly keeper: Party;
  readonly other: Party;
  readonly name: string;
  /** The lock of the keeper, and the same for the other client. */
  readonly kept: Lock;
  readonly seen: Lock;
}

async function scene(parties: Parties, connect?: () => Party["redis"]): Promise<Scene> {
  const where = connect ? { connect } : { url: own.url };
  const keeper = await parties.join({ ...where, client: { linger: 1_500 } });
  const other = await parties.join(where);
  const name = freshName();
  await keep(keeper, name, PAYS);
  return { keeper, other, name, kept: keeper.locks.lock(name), seen: other.locks.lock(name) };
}

describe("a cached lock", () => {
  let here: Scene;
  beforeEach(async () => {
    here = await scene(own.parties);
  });

  it("is not locked, for any client, while no caller is inside", async () => {
    const { kept, seen, other } = here;
    const several = other.locks.multiLock([freshName(), seen]);
    expect(await several.isLocked()).toBe(false);
    expect([await seen.isLocked(), await kept.isLocked()]).toEqual([false, false]);
    expect(await seen.inspect()).toMatchObject({ kept: true });
    const lease = await kept.lock();
    expect([await seen.isLocked(), await kept.isLocked()]).toEqual([true, true]);
    expect(await several.isLocked()).toBe(true);
    await lease.unlock();
    expect(await seen.isLocked()).toBe(false);
  });

  it("goes to a tryLock() without wait, and to that of a fairLock", async () => {
    const { keeper, other, name, seen } = here;
    for (const lock of [seen, other.locks.fairLock(name)]) {
      await keep(keeper, name);
      const lease = await lock.tryLock();
      expect(lease?.held).toBe(true);
      await lease?.unlock();
    }
  });

  it("is busy while its caller is inside, and stays with its client afterwards", async () => {
    const { keeper, name, kept, seen } = here;
    // A renewal that comes while a question stands in the queue takes it for a caller that waits:
    // then it does not stay.
    await until(async () => {
      await keep(keeper, name);
      const lease = await kept.lock();
      for (let i = 0; i < 3; i++) expect([await seen.tryLock(), await seen.recall()]).toEqual([null, "busy"]);
      await lease.unlock();
      return (await seen.inspect()).kept;
    });
    expect((await seen.inspect()).waiters).toEqual([]);
    expect(await seen.isLocked()).toBe(false);
  });

  it("is released by recall(), also of its own client", async () => {
    const { keeper, other, name, kept, seen } = here;
    const onlooker = new Onlooker(other.redis, name);
    for (const lock of [seen, kept]) {
      await keep(keeper, name);
      expect(await lock.recall()).toBe("released");
      await onlooker.gone();
      expect(await lock.recall()).toBe("free");
    }
  });

  it("is released by forceUnlock(), and no holder has lost it", async () => {
    const { keeper, other, name, seen } = here;
    const lost: unknown[] = [];
    keeper.locks.on("lost", (event) => lost.push(event));
    expect(await seen.forceUnlock()).toBe(true);
    await new Onlooker(other.redis, name).gone();
    await keep(keeper, name);
    expect(lost).toEqual([]);
  });

  it("goes to a multi-lock without wait, with all other members", async () => {
    const { keeper, other, name } = here;
    const names = [name, freshName(), freshName()];
    for (const one of names.slice(1)) await keep(keeper, one);
    for (const one of names) expect((await other.locks.lock(one).inspect()).kept).toBe(true);
    const lease = await other.locks.multiLock(names).tryLock();
    expect(lease?.held).toBe(true);
    await lease?.unlock();
  });
});

it.runIf(serverIs("7.0"))("in Cluster is recalled on the channel of its slot", async () => {
  const cluster = await RedisCluster.launch();
  const parties = new Parties();
  try {
    const { kept, seen, keeper, name } = await scene(parties, () => cluster.connect() as never);
    expect(await seen.isLocked()).toBe(false);
    const lease = await kept.lock();
    expect([await seen.isLocked(), await seen.tryLock(), await seen.recall()]).toEqual([true, null, "busy"]);
    await lease.unlock();
    const taken = await seen.tryLock();
    expect(taken?.held).toBe(true);
    await taken?.unlock();
    await keep(keeper, name);
    expect(await seen.recall()).toBe("released");
    await until(async () => (await seen.inspect()).holder === null, { what: "the lock to be free" });
    await parties.close();
  } finally {
    await cluster.stop();
  }
});
