// On a real Redis; in virtual time: test/world/directed/late-answers.test.ts.

import { expect, it } from "vitest";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { runs, Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** A renewal comes each second. */
const stage = new Stage({ near: { client: { leaseTime: 3_000 } } });

it("a renewal that fails after its lease was released is not reported", async () => {
  const { near, far, proxy, lock } = stage;
  const errors: unknown[] = [];
  near.locks.on("error", (error) => errors.push(error));
  const lease = await near.locks.lock(lock.name).lock();
  // The server knows the release, but not the renewal: the client sends the renewal again, after the release.
  await far.redis.script("FLUSH");
  const { renew: _, renewStays: __, ...known } = handoffLua;
  await loadScripts(far.redis, known);
  proxy.record();
  proxy.delay(200, { direction: "to client", which: "commands" });
  const renewals = () => proxy.commands.filter(({ command }) => runs("renew")(command)).length;
  await until(() => renewals() === 1, { what: "a renewal" });
  await lease.unlock();
  near.redis.disconnect();
  await until(() => near.redis.status === "end");
  await near.locks.close();
  expect(errors).toEqual([]);
});
