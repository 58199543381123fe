import { Cluster } from "iovalkey";
import { expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { until } from "../support/until.ts";

// A Cluster of iovalkey, the fork of ioredis for Valkey. One server: smoke.test.ts.

staysQuiet();

it("two clients on an iovalkey Cluster hand over a lock and the permits of a semaphore, on every node", async () => {
  const cluster = await RedisCluster.launch();
  onTestFinished(() => cluster.stop());
  const join = () => {
    const redis = new Cluster(cluster.address.nodes, { clusterRetryStrategy: () => 20 });
    const locks = createLockClient(redis);
    onTestFinished(async () => {
      await locks.close({ grace: 0 });
      redis.disconnect();
    });
    return locks;
  };
  const [here, there] = [join(), join()];
  const primaries = new Set<unknown>();
  while (primaries.size < 3) {
    const name = freshName();
    primaries.add(await cluster.primaryOf(`{${name}}`));
    const lease = await here.lock(name).lock();
    expect(await there.lock(name).tryLock()).toBeNull();
    const waiting = there.lock(name).lock();
    await until(async () => (await here.lock(name).inspect()).waiters?.length === 1);
    await lease.unlock();
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    await next.unlock();

    const [mine, theirs] = [here, there].map((locks) => locks.semaphore(name, { permits: 2 }));
    const permits = await mine?.acquire(2);
    const granted = theirs?.acquire();
    await until(async () => (await mine?.inspect())?.waiters.length === 1);
    await permits?.release();
    await (await granted)?.release();
    expect((await mine?.inspect())?.used).toBe(0);
  }
  expect(await here.check()).toMatchObject({ ok: true, problems: [] });
});
