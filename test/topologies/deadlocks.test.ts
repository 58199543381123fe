import { expect, it, onTestFinished, vi } from "vitest";
import { createLockClient, type DeadlockError } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { until } from "../support/until.ts";

vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

it("in a Cluster a deadlock over locks at different primaries is found", async () => {
  const cluster = await RedisCluster.launch();
  onTestFinished(() => cluster.stop());
  const all = [1, 2, 3, 4].map(() => createLockClient(cluster.connect(), { deadlocks: "reject" }));
  const names = all.map(() => freshName());
  const held = Promise.all(names.map((name, i) => until(() => all[i]?.lock(name).isLocked())));
  const ended = await Promise.all(
    all.map((locks, i) => {
      const nested = () => locks.lock(names[(i + 1) % names.length] ?? "").withLock(() => "both");
      return locks
        .lock(names[i] ?? "")
        .withLock(() => held.then(nested))
        .catch((error: DeadlockError) => error.code);
    }),
  );
  expect(ended.sort()).toEqual(["DEADLOCK", "both", "both", "both"]);
  for (const locks of all) await locks.close();
});
