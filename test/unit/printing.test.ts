import { inspect } from "node:util";
import { afterAll, expect, it } from "vitest";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { freshName, Parties } from "../support/fixture.ts";

const parties = new Parties();
afterAll(parties.close);

it("leases, locks and clients print what they are, and nothing secret", async () => {
  const { locks, redis } = await parties.join();
  const name = freshName();
  const lock = locks.lock(name);
  const lease = await lock.lock();
  const multi = await locks.multiLock([`${name}:1`, `${name}:2`]).lock();
  expect(inspect(lease)).toMatch(/^Lease \{/);
  expect(JSON.parse(JSON.stringify(lease))).toMatchObject({ name, token: lease.token, held: true });
  expect(inspect(multi)).toMatch(/^MultiLease \{/);
  const tokens = Object.fromEntries(multi.tokens);
  expect(JSON.parse(JSON.stringify(multi))).toMatchObject({ held: true, tokens });
  await multi.unlock();
  await lease.unlock();
  expect(JSON.parse(JSON.stringify(lease))).toMatchObject({ held: false, remaining: 0 });
  expect(inspect(lock, { breakLength: 500 })).toBe(`Lock { name: '${name}', kind: 'lock' }`);
  expect(inspect(locks.multiLock(["a", "b"]))).toBe("MultiLock { names: [ 'a', 'b' ] }");
  expect(inspect(locks, { breakLength: 500 })).toBe(`LockClient { id: '${locks.id}', closed: false }`);
  const others = [redis.duplicate({ lazyConnect: true }), redis.duplicate({ lazyConnect: true })];
  const quorum = createQuorumClient([redis, ...others]);
  expect(inspect(quorum)).toMatch(/^QuorumClient \{/);
  expect(inspect([lease, lock, locks, quorum], { depth: 9, showHidden: true })).not.toMatch(/Redis|signal/);
  await quorum.close();
  const slots = locks.semaphore(name, { permits: 5 });
  const permits = await slots.acquire(4);
  expect(inspect(slots, { breakLength: 200 })).toBe(
    `Semaphore { name: '${name}', kind: 'semaphore', permits: 5 }`,
  );
  expect(JSON.parse(JSON.stringify(permits))).toMatchObject({ name, held: true, units: 4 });
  await permits.release();
});
