import { once } from "node:events";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { Keys } from "../../src/redis/keys.ts";
import { pauses } from "../../src/util/abort.ts";
import { failure } from "../contract/observe.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// What else becomes of observers and leaders whose Redis cannot be reached is in
// test/world/directed/election.test.ts and election-observers.test.ts.

const stage = new Stage();

it("an observer of a connection that is closed for good gets an error, and keeps no process alive", async () => {
  const { near, lock } = stage;
  const seen = near.locks.election(lock.name).observe();
  expect(await seen.next()).toEqual({ done: false, value: null });
  const pending = failure(seen.next());
  near.redis.disconnect();
  expect(await pending).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(await seen.next()).toEqual({ done: true, value: undefined });
  await sleep(100);
});

it.each([
  ["in its pause", 1],
  ["while its body ends", 0],
])("a client closed %s leaves no pause timer that would keep the process alive", async (when, often) => {
  const { near, far, lock } = stage;
  const { locks } = near;
  const begun = vi.spyOn(pauses, "set");
  locks.on("error", () => {});
  const running = locks.election(lock.name, { lease: 3_000 }).runAsLeader(async ({ signal }) => {
    // The term is over, as by a server that has lost it.
    await far.redis.del(new Keys("", false).ofElection(lock.name).lock);
    if (!signal.aborted) await once(signal, "abort");
    if (when !== "in its pause") await locks.close();
    throw new Error("behind the loss");
  });
  const ended = failure(running);
  await until(() => begun.mock.calls.length === often);
  if (when === "in its pause") {
    void locks.close();
    await nextTurn();
    expect(pauses.size).toBe(0);
  }
  expect(await ended).toMatchObject({ code: "CLIENT_CLOSED" });
  expect(begun).toHaveBeenCalledTimes(often);
  begun.mockRestore();
});
