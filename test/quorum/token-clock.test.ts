import { describe, expect, it } from "vitest";
import { clocks } from "../../src/util/clock.ts";
import { failure } from "../contract/observe.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

// A clock key that cannot be one is that node's trouble: the others decide.

const stage = new QuorumStage(3);

describe.each(["9007199254740990", "9007199254740000", "9000000000000001", "1e300", "inf"])(
  "a node whose clock is %s",
  (value) => {
    it("has no vote, and costs a call nothing; its lease is on all nodes, and tokens grow", async () => {
      const parties = [await stage.join(), await stage.join()];
      await stage.admin(1).set(stage.clock, value);
      const tokens: number[] = [];
      for (let i = 0; i < 20; i++) {
        const { locks } = parties[i % 2] ?? {};
        await locks?.lock(stage.name).withLock({ wait: 5_000 }, ({ token }) => void tokens.push(token));
      }
      expect(tokens.length).toBe(20);
      expect(tokens.every(Number.isSafeInteger)).toBe(true);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      const lease = await parties[0]?.locks.lock(stage.name).lock();
      await until(() => stage.isEverywhere());
      await lease?.unlock();
      await stage.free();
      expect(await stage.admin(1).get(stage.clock)).toBe(value);
      await stage.admin(1).del(stage.clock);
    });
  },
);

it("two nodes whose clocks are too large leave no majority, and the error names them and the key", async () => {
  const { locks } = await stage.join();
  for (const node of [1, 2]) await stage.admin(node).set(stage.clock, `${2 ** 53 - 2}`);
  const error = await failure(locks.lock(stage.name).tryLock());
  expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  for (const node of [1, 2])
    expect(String(error)).toContain(
      `node ${node}: ERR the clock of this node is too large: ${stage.clock} is 9007199254740990. Delete that key`,
    );
  for (const node of [1, 2]) await stage.admin(node).del(stage.clock);
  await (await locks.lock(stage.name).lock()).unlock();
  await stage.free();
});

it.each(["yesterday", "-5", ""])("a clock that is %j is repaired by the next vote", async (value) => {
  const { locks } = await stage.join();
  await stage.admin(2).set(stage.clock, value);
  await locks.lock(stage.name).withLock(async ({ token }) => {
    await until(async () => Number(await stage.admin(2).get(stage.clock)) >= token);
  });
  await stage.free();
});

it("a clock with fractions of a microsecond: the reserve for local hand-offs is whole", async () => {
  const { wall } = clocks;
  const later = Date.now() + 60_000;
  // ….5 and 5 more are both rounded to even numbers: 4 apart.
  clocks.wall = { now: () => later + 0.5495 };
  try {
    const { locks } = await stage.join({ localHandoffs: 5 });
    const lease = await locks.lock(stage.name).lock();
    await until(() => stage.isEverywhere());
    for (const node of [1, 2, 3]) expect(await stage.admin(node).get(stage.clock)).toBe(`${lease.token + 5}`);
    await lease.unlock();
    await stage.free();
  } finally {
    clocks.wall = wall;
  }
});
