import { expect, test } from "vitest";
import { scene } from "./scene.ts";

test("the holder crashes: the waiter has the lock when the lease is over", scene(async (world) => {
  const [holder, waiter] = world.processes(2);
  await holder.take("lock");
  const waiting = waiter.take("lock");
  await world.pass(100);
  holder.crash();
  const { result: lease, took } = await world.timed(waiting);
  expect(took).toBeGreaterThan(29_000);
  expect(took).toBeLessThan(32_000);
  await lease.unlock();
}));
