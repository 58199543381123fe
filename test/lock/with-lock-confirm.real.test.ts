// On a real Redis; in virtual time: test/world/directed/late-answers.test.ts.

import { expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { nextConnection } from "../support/link.ts";
import { runs, Stage } from "../support/stage.ts";

// `withLock` with `confirm`, and Redis does not say at the end whether the lock was held.

const redis = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
const stage = new Stage({ near: { redis } });

it("a lost answer makes withLock reject, whatever the body returned; without `confirm` it is an event", async () => {
  const { near, proxy, lock } = stage;
  const mine = near.locks.lock(lock.name);
  const errors: unknown[] = [];
  near.locks.on("error", (error) => errors.push(error));

  const back = nextConnection(near.redis);
  const first = proxy.dropReply(runs("release"));
  expect(await mine.withLock(() => 1)).toBe(1);
  await first;
  expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE" }]);
  await lock.gone();
  await back();

  const second = proxy.dropReply(runs("release"));
  const error = await failure(mine.withLock({ confirm: true }, () => 2));
  await second;
  expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: lock.name });
  expect(errors).toHaveLength(1);
});

it("the error of a body comes first, and the missing answer is an event", async () => {
  const { near, proxy, lock } = stage;
  const errors: unknown[] = [];
  near.locks.on("error", (error) => errors.push(error));
  const dropped = proxy.dropReply(runs("release"));
  const failed = new Error("the body failed");
  const failing = async () => {
    throw failed;
  };
  expect(await failure(near.locks.lock(lock.name).withLock({ confirm: true }, failing))).toBe(failed);
  await dropped;
  expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE" }]);
});
