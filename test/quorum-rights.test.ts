import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { createLockClient, LockUnavailableError } from "../src/index.ts";
import { failure } from "./contract/observe.ts";
import { QuorumStage } from "./support/quorum-stage.ts";
import { until } from "./support/until.ts";

const stage = new QuorumStage(3);

/** A client whose user has the rights that docs/operating.md names for a quorum, but for these, at these nodes. */
async function join(without: string[] = [], where = [1, 2, 3]) {
  const page = readFileSync(new URL("../docs/operating.md", import.meta.url), "utf8");
  const line = /^\* For a quorum[^`]*`(?<keys>[^`]+)`[^`]*`(?<commands>[^`]+)`/m.exec(page)?.groups;
  const all = `resetkeys resetchannels -@all ${line?.keys} ${line?.commands}`.split(" ");
  const given = all.filter((right) => !without.includes(right));
  const nodes = await Promise.all(
    [1, 2, 3].map(async (node) => {
      const rights = where.includes(node) ? given : all;
      await stage.admin(node).call("ACL", "SETUSER", "quorum", "reset", "on", ">secret", ...rights);
      return new Redis({ port: stage.server(node).port, username: "quorum", password: "secret" });
    }),
  );
  const locks = createLockClient(nodes, { restartDelay: 0, leaseTime: 900 });
  onTestFinished(async () => {
    await locks.close({ grace: 0 });
    for (const node of nodes) node.disconnect();
  });
  return locks;
}

it("those that are documented are enough", async () => {
  const [first, second] = [await join(), await join()];
  const errors: Error[] = [];
  first.on("error", (error) => errors.push(error));
  let renewals = 0;
  first.on("renew", () => void renewals++);
  const lease = await first.lock(stage.name).lock();
  const waiter = second.lock(stage.name).lock();
  await until(() => renewals > 0);
  await lease.extend(1_000);
  expect((await second.lock(stage.name).inspect()).token).toBe(lease.token);
  await lease.unlock();
  await (await waiter).unlock();
  expect(errors).toEqual([]);
});

it.each(["+del", "+publish", "+pexpire", "&holdfast:quorum:*"])(
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
  const start = performance.now();
  await locks.close({ grace: 5_000 }); // waits for whatever is still to be taken back
  expect(performance.now() - start).toBeLessThan(1_500);
});
