import { expect, it } from "vitest";
import { countCommands } from "../support/command-count.ts";
import { Stage } from "../support/stage.ts";

const stage = new Stage();

it("a parked caller sends its re-checks, and no other command until it leaves", async () => {
  const { near, far, lock } = stage;
  await stage.warm(near);
  const held = await far.locks.lock(lock.name).lock();
  await near.locks.lock(lock.name).tryLock(100); // the server knows the script that leaves from now on
  const asked = performance.now();
  const waiting = near.locks.lock(lock.name).tryLock(4_000, 30_000);
  await lock.queued(1);
  const count = await countCommands(far.redis);
  expect(await waiting).toBeNull();
  // 1.125 s apart at the least, and the leave. It is 4 s of waiting, and more on a busy machine.
  const most = Math.floor((performance.now() - asked) / 1_125) + 1;
  expect(await count.waiting()).toBeLessThanOrEqual(most);
  expect(await count.waiting()).toBeGreaterThanOrEqual(2);
  await held.unlock();
});
