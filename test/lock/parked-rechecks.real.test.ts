// On a real Redis; in virtual time: test/world/directed/rechecks.test.ts.

import { expect, it } from "vitest";
import { countCommands } from "../support/command-count.ts";
import { Stage } from "../support/stage.ts";

const stage = new Stage();

it("a parked caller sends its re-checks, and no other command until it leaves", async () => {
  const { near, far, lock } = stage;
  const all = [near, await stage.join(), await stage.join(), await stage.join()];
  for (const party of all) await stage.warm(party);
  const held = await far.locks.lock(lock.name).lock();
  await near.locks.lock(lock.name).tryLock(100); // the server knows the script that leaves from now on
  const asked = performance.now();
  const waiting = all.map(({ locks }) => locks.lock(lock.name).tryLock(4_000, 30_000));
  await lock.queued(4);
  const count = await countCommands(far.redis);
  expect(await Promise.all(waiting)).toEqual([null, null, null, null]);
  // 1.125 s apart at the least, and the leave. It is 4 s of waiting, and more on a busy machine.
  const most = Math.floor((performance.now() - asked) / 1_125) + 1;
  expect(await count.waiting()).toBeLessThanOrEqual(4 * most);
  expect(await count.waiting()).toBeGreaterThanOrEqual(4 * 2);
  await held.unlock();
});
