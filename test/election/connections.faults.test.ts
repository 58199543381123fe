import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { Stage } from "../support/stage.ts";

// What else becomes of observers and leaders whose Redis cannot be reached is in
// test/world/directed/election.test.ts and election-observers.test.ts.

const stage = new Stage();

it("an observer of a connection that is closed for good gets an error, and keeps no process alive", async () => {
  const { near, lock } = stage;
  const seen = near.locks.election(lock.name).observe();
  expect(await seen.next()).toEqual({ done: false, value: null });
  const pending = failure(seen.next());
  near.redis.disconnect();
  expect(await pending).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(await seen.next()).toEqual({ done: true, value: undefined });
  await sleep(100);
});
