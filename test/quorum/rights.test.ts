import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { failure } from "../contract/observe.ts";
import { awake } from "../support/awake.ts";
import { rights } from "../support/documented-rights.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { serverIs } from "../support/server-version.ts";
import { until } from "../support/until.ts";

const stage = new QuorumStage(3);

/**
 * A client whose user has the rights that docs/operating.md names for a quorum, but for these, at
 * these nodes.
 */
async function join(without: string[] = [], where = [1, 2, 3]) {
  const all = rights.quorum;
  const given = all.filter((right) => !without.includes(right));
  const nodes = await Promise.all(
    [1, 2, 3].map(async (node) => {
      const rights = where.includes(node) ? given : all;
      await stage.admin(node).call("ACL", "SETUSER", "quorum", "reset", "on", ">secret", ...rights);
      return new Redis({ port: stage.server(node).port, username: "quorum", password: "secret" });
    }),
  );
  const locks = createQuorumClient(nodes, { restartDelay: 0, leaseTime: 900 });
  onTestFinished(async () => {
    await locks.close({ grace: 0 });
    for (const node of nodes) node.disconnect();
  });
  return locks;
}

// Redis 6.2 cannot look at them ahead.
it.skipIf(!serverIs("7.0")).each(["+del", "+publish", "+pexpire", "&holdfast:quorum:*"])(
  "without %s the lock is unavailable, and nothing is written",
  async (right) => {
    const locks = await join([right]);
    const error = await failure(locks.lock(stage.name).tryLock());
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(String(error)).toMatch(/node \d: .*NOPERM .*node \d: .*NOPERM/);
    expect(await stage.holders()).toEqual([null, null, null]);
  },
);

it("a node that refuses all scripts is not asked to take back what it never had", async () => {
  const locks = await join(["+evalsha"], [3]);
  for (let round = 0; round < 3; round++) await locks.lock(stage.name).withLock(() => {});
  const start = awake();
  await locks.close({ grace: 5_000 }); // waits for whatever is still to be taken back
  expect(awake() - start).toBeLessThan(1_500);
});

it("a node that refuses all scripts is not asked to take back what it was never asked to grant", async () => {
  const refusals = async () => {
    const stats = await stage.admin(3).info("commandstats");
    return Number(/cmdstat_evalsha:.*rejected_calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  const locks = await join(["+evalsha"], [3]);
  const lease = await locks.lock(stage.name).lock();
  const asked = await refusals();
  // before each joining it is asked which server it is
  await until(async () => (await refusals()) > asked + 2);
  await lease.unlock();
  const [before, start] = [await refusals(), awake()];
  await until(() => awake() - start > 1_000);
  expect(await refusals()).toBeLessThanOrEqual(before + 1); // the release
});
