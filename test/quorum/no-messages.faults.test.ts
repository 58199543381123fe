import { expect, it } from "vitest";
import type { LockError } from "../../src/index.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

const stage = new QuorumStage(3);

it("no messages arrive from one of the nodes: an error event names that server, and no other", async () => {
  const near = await stage.join({}, "proxies");
  const far = await stage.join();
  const told: LockError[] = [];
  near.locks.on("error", (error) => told.push(error));
  const held = await far.locks.lock(stage.name).lock();
  // The connections for commands are there.
  stage.proxy(2).refuse(true);
  const waiting = near.locks.lock(stage.name).lock();
  await until(() => told.length > 0, { timeout: 60_000 });
  expect(told).toMatchObject([
    { code: "NO_MESSAGES", message: expect.stringContaining(`127.0.0.1:${stage.proxy(2).port}`) },
  ]);
  for (const node of [1, 3]) expect(told[0]?.message).not.toContain(`:${stage.proxy(node).port}`);
  await held.unlock();
  await (await waiting).unlock();
});
