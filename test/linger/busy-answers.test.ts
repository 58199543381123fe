import { expect, it, vi } from "vitest";
import { TURNS_TIME } from "../../src/defaults.ts";
import type { Lease } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { block } from "../support/block.ts";
import { Stage } from "../support/stage.ts";
import { keep, STAY_FRESH } from "../support/stays.ts";
import { until } from "../support/until.ts";

// tryLock() of a lock that this client keeps, while another caller of the client is on its way into
// it. No process holds the lock then, so "busy" would be wrong.

// It stays kept however busy the machine is.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  GRANT_WINDOW: 60_000,
  STAY_WINDOW: 60_000,
}));
const stage = new Stage({ near: { client: { linger: 20_000 } } });
const mine = () => stage.near.locks.lock(stage.lock.name);

/** The lock is kept, and what is known of it is too old for a caller to come in without asking. */
async function kept(): Promise<void> {
  await keep(stage.near, stage.lock.name);
  const since = performance.now();
  await until(() => performance.now() - since > 2 * STAY_FRESH);
  expect(stage.near.locks.stats().kept).toBe(1);
}

it.each([
  ["tryLock()", {}],
  ["tryLock() with a short wait", { wait: 50 }],
])("%s beside a caller that asks for a cached lock throws while Redis hangs", async (_, options) => {
  await kept();
  stage.proxy.freeze();
  const first = failure(mine().lock({ wait: 300 }));
  const second = failure(mine().tryLock(options));
  expect(await second).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(await first).toMatchObject({ code: "LOCK_UNAVAILABLE" });
});

it("tryLock() beside a caller that asks for a cached lock says busy once that caller has it", async () => {
  await kept();
  stage.proxy.freeze();
  let lease: Lease | undefined;
  const first = mine()
    .lock()
    .then((got) => {
      lease = got;
    });
  const second = mine().tryLock();
  stage.proxy.thaw();
  expect([await second, lease?.held]).toEqual([null, true]);
  await first;
  await lease?.unlock();
});

it("tryLock() gets the cached lock that a caller asked for before it gave up", async () => {
  await kept();
  const enough = new AbortController();
  const first = failure(mine().lock({ signal: enough.signal }));
  enough.abort(new Error("enough"));
  const lease = await mine().tryLock();
  expect(lease?.held).toBe(true);
  expect(await first).toMatchObject({ message: "enough" });
  await lease?.unlock();
});

it("tryLock() gets the cached lock whose caller waited for a turn of the event loop and gave up", async () => {
  await kept();
  // Now Redis has said lately that it is ours.
  await (await mine().lock()).unlock();
  await (await mine().lock()).unlock();
  // Callers have come and gone for so long in this turn of the event loop that the next one waits
  // for another turn.
  block(2 * TURNS_TIME);
  const enough = new AbortController();
  const first = failure(mine().lock({ signal: enough.signal }));
  const second = mine().tryLock();
  enough.abort(new Error("enough"));
  const lease = await second;
  expect(lease?.held).toBe(true);
  expect(await first).toMatchObject({ message: "enough" });
  await lease?.unlock();
});
