import { expect, it, onTestFinished, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import { freshName } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { OwnServer } from "../support/own-server.ts";
import { keep } from "../support/stays.ts";
import { until } from "../support/until.ts";

/** In place of the usual 10 000. */
const MOST = 8;
vi.mock("../../src/defaults.ts", async (all) => ({ ...((await all()) as object), KEPT_MOST: 8 }));

const own = new OwnServer();

it("a client caches no more locks than its limit, and drops the least recently used", async () => {
  const keeps = vi.spyOn(LingerLearner.prototype, "keeps").mockReturnValue(true);
  onTestFinished(() => keeps.mockRestore());
  const keeper = await own.parties.join({ url: own.url, client: { linger: 1_500 } });
  const { locks } = keeper;
  await keep(keeper, freshName());
  const turn = async (name: string) => (await locks.lock(name).lock()).unlock();
  const held = await until(async () => {
    const { lapsed } = locks.stats();
    const names = Array.from({ length: MOST + 2 }, () => freshName());
    for (const name of names.slice(0, MOST)) await turn(name);
    await turn(names[0] ?? ""); // used again
    for (const name of names.slice(MOST)) await turn(name);
    // Behind all that was sent.
    await keeper.redis.ping();
    const held = await Promise.all(names.map((name) => new Onlooker(keeper.redis, name).holder()));
    // Else this machine stood still, and they were kept for as long as they may be.
    return locks.stats().lapsed === lapsed && held.map((holder) => holder !== "");
  });
  expect(held).toEqual([true, false, false, ...Array(MOST - 1).fill(true)]);
});
