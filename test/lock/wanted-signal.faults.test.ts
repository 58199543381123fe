import { expect, it } from "vitest";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// `lease.wanted` of a client that receives no messages.

const stage = new Stage();

it("a user that may not subscribe is notified by renewals", async () => {
  const { far, lock, server } = stage;
  await far.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "&*", "+@all", "-subscribe");
  const mute = await stage.join({
    url: server.url,
    redis: { username: "mute", password: "any" },
    client: { leaseTime: 1_500 },
  });
  mute.locks.on("error", () => {}); // NO_MESSAGES
  const lease = await mute.locks.lock(lock.name).lock();
  expect(lease.wanted.aborted).toBe(false);
  const waiting = far.locks.lock(lock.name).withLock(() => {});
  await until(() => lease.wanted.aborted, { what: "an abort" });
  expect(lease.wanted.reason).toMatchObject({ code: "LOCK_WANTED" });
  await lease.unlock();
  await waiting;
});
