import { expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { Stage } from "../support/stage.ts";

const stage = new Stage();

it("tryLock() beside a caller that waits throws while Redis hangs, and says busy when it answers", async () => {
  const { near, far, proxy, lock } = stage;
  const held = await far.locks.lock(lock.name).lock();
  const waiting = near.locks.lock(lock.name).lock();
  await lock.queued(1);
  // Commands of a connection are answered in order: what it has sent by now is answered by then.
  for (let i = 0; i < 3; i++) await near.redis.ping();
  proxy.freeze();
  expect(await failure(near.locks.lock(lock.name).tryLock())).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  proxy.thaw();
  await near.redis.ping();
  expect(await near.locks.lock(lock.name).tryLock({ wait: 1_000 })).toBeNull();
  await held.unlock();
  await (await waiting).unlock();
});
