import { expect, it } from "vitest";
import { Stage } from "../support/stage.ts";

const stage = new Stage();

it("a caller that times out while Redis is silent is answered without the holder", async () => {
  const { near, far, lock, proxy } = stage;
  await stage.warm(near);
  const held = await far.locks.lock(lock.name).lock();
  const waiting = near.locks
    .lock(lock.name)
    .lock({ wait: 1_000 })
    .catch((error: unknown) => error);
  await lock.queued(1);
  proxy.freeze();
  expect(await waiting).toMatchObject({ code: "LOCK_TIMEOUT", holder: null });
  proxy.thaw();
  await held.unlock();
});
