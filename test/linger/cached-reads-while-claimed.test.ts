import { expect, it, vi } from "vitest";
import type { Lease } from "../../src/index.ts";
import { countedLua } from "../../src/redis/lua.generated.ts";
import { KeptReadsStage } from "../support/kept-reads.ts";
import { listenersOf } from "../support/listeners.ts";
import { until } from "../support/until.ts";

// A hold that may be kept is claimed before its first reader has it, because the answer that
// brought it was slow. Here every explicit lease is claimed, and what Redis has said counts for so
// long that what ends it before must end it, and not that time.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  ENOUGH_WATCHDOG: 0.99,
  FRESH: 20_000,
  GRANT_WINDOW: 30_000,
  STAY_WINDOW: 30_000,
}));

const LEASE = { lease: 30_000 };
const stage = new KeptReadsStage();

/**
 * A reader whose hold is claimed, by a command that is unanswered until `proxy.thaw()`; and the
 * messages that its process has read.
 */
async function claimed(): Promise<{ reading: Promise<Lease>; hold: string; messages: string[] }> {
  const { near, far, proxy, key } = stage;
  const { heard: messages } = listenersOf(near.redis);
  await stage.keep();
  await stage.pairOf(far).write.withLock(() => {});
  messages.length = 0;
  const claims = proxy.stall(([name, sha]) => name === "evalsha" && sha === countedLua.renew.sha);
  const reading = stage.pairOf(near).read.lock(LEASE);
  await claims;
  const [hold = ""] = (await far.redis.hkeys(key)).filter((field) => field !== "=");
  return { reading, hold, messages };
}

it("a recall that arrives while a hold is claimed admits no further readers", async () => {
  const { near, far, proxy } = stage;
  const { reading, messages } = await claimed();
  const writing = stage.pairOf(far).write.lock();
  await until(() => messages.length > 0, { what: "the recall" });
  proxy.thaw();
  const first = await reading;
  expect(await stage.pairOf(near).read.tryLock(LEASE)).toBeNull();
  await first.unlock();
  await (await writing).unlock();
});

it("a writer that does not wait is notified; afterwards nothing is cached, because another writer may have queued", async () => {
  const { near, far, proxy, key } = stage;
  const { reading, hold, messages } = await claimed();
  const ears = far.redis.duplicate();
  const nonce = `${far.locks.id}.0123456789abcdef`;
  const told = new Promise((resolve) => ears.on("message", (_, text: string) => resolve(text)));
  await ears.subscribe(`holdfast:client:${far.locks.id}`);
  await far.redis.publish(hold.slice(0, -22), `recall ${hold} ${nonce} ${key}`);
  await until(() => messages.length > 0, { what: "the recall" });
  proxy.thaw();
  await (await reading).unlock();
  expect([near.locks.stats().kept, await stage.holders()]).toEqual([0, 0]);
  expect(await told).toBe(`busy ${nonce} ${key}`);
  ears.disconnect();
});
