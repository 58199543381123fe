// On a real Redis; in virtual time: test/world/directed/cached-locks.test.ts.

import { expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { runs, Stage } from "../support/stage.ts";
import { keep } from "../support/stays.ts";
import { until } from "../support/until.ts";

// The release of kept locks is executed, its reply is lost, and ioredis sends it again.

const stage = new Stage({ near: { client: { linger: 300 } } });

it("no loss is reported", async () => {
  const { near, proxy } = stage;
  const lost: unknown[] = [];
  near.locks.on("lost", (event) => lost.push(event));
  for (let i = 0; i < 2; i++) await keep(near, freshName());
  await proxy.dropReply(runs("releaseStays"));
  // Its copy is sent with the reconnect, before this.
  await near.redis.ping();
  expect(lost).toEqual([]);
});

it("a loss is reported, when the copy finds another server's data", async () => {
  const { near, far, proxy } = stage;
  const lost: { error: { reason: string } }[] = [];
  near.locks.on("lost", (event) => lost.push(event));
  await keep(near, freshName());
  proxy.refuse(true);
  await proxy.dropReply(runs("releaseStays"));
  await far.redis.flushall();
  proxy.refuse(false);
  await until(() => lost.length > 0);
  expect(lost[0]?.error.reason).toBe("unknown");
});
