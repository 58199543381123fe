import { expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

const stage = new QuorumStage(3);

it.each([
  ["tryLock()", {}],
  ["tryLock() with a short wait", { wait: 50 }],
])("%s beside a waiting caller throws while all masters hang", async (_, options) => {
  const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
  const held = await far.locks.lock(stage.name).lock();
  const enough = new AbortController();
  const waiting = failure(near.locks.lock(stage.name).lock({ signal: enough.signal }));
  await until(() => stage.isHeard(), { what: "it to wait" });
  expect(await near.locks.lock(stage.name).tryLock()).toBeNull();
  for (const proxy of stage.proxies) proxy.freeze();
  expect(await failure(near.locks.lock(stage.name).tryLock(options))).toMatchObject({
    code: "LOCK_UNAVAILABLE",
  });
  enough.abort("enough");
  expect(await waiting).toBe("enough");
  for (const proxy of stage.proxies) proxy.thaw();
  await held.unlock();
});
