import { expect, it, vi } from "vitest";
import type { Semaphore } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// Permits are passed on for 25 ms. Here they may be for so long that their number ends it, and not that time.
vi.mock("../../src/defaults.ts", async (all) => ({ ...((await all()) as object), PASS_TIME: 20_000 }));

const own = new OwnServer();

it("permits are handed off locally up to the limit, then another process has its turn", async () => {
  const [a, b] = await Promise.all([1, 2].map(() => own.parties.join({ url: own.url })));
  const name = freshName();
  const waiting = (count: number) => until(async () => (await mine.inspect()).waiters.length === count);
  const options = { permits: 1, localHandoffs: 3 };
  const [mine, theirs] = [a, b].map((party) => party?.locks.semaphore(name, options)) as [
    Semaphore,
    Semaphore,
  ];
  const first = await b?.locks.semaphore(name, { permits: 1, fair: true }).acquire();
  const order: string[] = [];
  const enter = async (slots: Semaphore, label: string): Promise<void> => {
    const lease = await slots.acquire();
    order.push(label);
    await lease.release();
  };
  const all = Array.from({ length: 6 }, () => enter(mine, "mine"));
  await waiting(1);
  all.push(enter(theirs, "theirs"));
  await waiting(2);
  await first?.release();
  await Promise.all(all);
  expect(order).toEqual(["mine", "mine", "mine", "mine", "theirs", "mine", "mine"]);
});
