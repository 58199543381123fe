import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import type { Lease, UnfencedLease } from "../../src/index.ts";
import { failure, lossOf } from "../contract/observe.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";

// A lease as the fence of a write: its token, while it is held.

const parties = new Parties();
let party: Party;
let key: string;

beforeAll(async () => {
  party = await parties.join();
});
beforeEach(() => {
  key = freshName("fenced");
});
afterEach(async () => {
  await party.redis.del(key, `holdfast:fence:${key}`);
});
afterAll(parties.close);

const write = (fence: UnfencedLease) => fencedSet(party.redis, key, "a", { fence: fence as Lease });

it("a lease supplies its token, and its name for errors", async () => {
  const name = freshName();
  const lease = await party.locks.lock(name).lock();
  await write(lease);
  expect(await party.redis.get(`holdfast:fence:${key}`)).toBe(`${lease.token}`);
  await fencedSet(party.redis, key, "b", { fence: lease.token + 1 });
  expect(await failure(write(lease))).toMatchObject({ code: "STALE_TOKEN", lockName: name });
  await lease.unlock();
});

it("a lease that is known to be lost, or was unlocked, sends nothing", async () => {
  const lock = party.locks.lock(freshName());
  const lost = await lock.lock({ lease: 20 });
  await lossOf(lost.signal);
  expect(await failure(write(lost))).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  const over = await lock.lock();
  await over.unlock();
  expect(await failure(write(over))).toMatchObject({ code: "LOCK_RELEASED" });
  expect(await party.redis.exists(key, `holdfast:fence:${key}`)).toBe(0);
});
