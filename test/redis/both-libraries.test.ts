import { afterAll, beforeAll, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Processes with ioredis and processes with node-redis share locks, permits and elections.

const parties = new Parties();
let actors: Actor[];
beforeAll(async () => {
  const libraries = ["ioredis", "node-redis", "node-redis"] as const;
  actors = await Promise.all(libraries.map((library) => Actor.start({ url: testUrl(), library })));
});
afterAll(async () => {
  await Promise.all(actors.map((actor) => actor.end()));
  await parties.close();
});
const [IOREDIS, NODE_REDIS] = [0, 1] as const;

it.each(["lock", "fairLock", "writeLock"] as const)("%s: one holder at a time", async (kind) => {
  const { redis } = await parties.join();
  const name = freshName();
  const counterKey = freshName("counter");
  const options = { tasks: 4, rounds: 25, holdMs: 0, counterKey };
  const reports = await Promise.all(actors.map((actor) => actor.call("hammer", kind, name, options)));
  expect(reports.map(({ overlaps, lost, acquisitions }) => [overlaps, lost, acquisitions])).toEqual(
    actors.map(() => [0, 0, 100]),
  );
  expect(await redis.get(counterKey)).toBe("300");
});

it.each([
  ["ioredis", "node-redis", IOREDIS, NODE_REDIS],
  ["node-redis", "ioredis", NODE_REDIS, IOREDIS],
] as const)("a lock that %s unlocks goes to a waiter with %s", async (_, __, from, to) => {
  const name = freshName();
  const { locks } = await parties.join();
  const held = await actors[from]?.call("acquire", "lock", name, 1_000, 60_000);
  const waiting = actors[to]?.call("acquire", "lock", name, 60_000, 60_000);
  await until(async () => (await locks.lock(name).inspect())?.waiters?.length === 1);
  await actors[from]?.call("unlock", held?.handle ?? -1);
  expect((await waiting)?.token).toBeGreaterThan(held?.token ?? Number.POSITIVE_INFINITY);
});

it("a permit is counted for both, and goes from one to the other", async () => {
  const name = freshName();
  const [one, other] = [actors[IOREDIS], actors[NODE_REDIS]];
  const held = await one?.call("acquire", "permit", name, 1_000, 60_000);
  expect(held).not.toBeNull();
  expect(await other?.call("acquire", "permit", name, 0)).toBeNull();
  const waiting = other?.call("acquire", "permit", name, 60_000, 60_000);
  await one?.call("unlock", held?.handle ?? -1);
  expect(await waiting).not.toBeNull();
  expect(await one?.call("acquire", "permit", name, 0)).toBeNull();
});

it("an election has one leader; when its process dies, another one with the other library leads", async () => {
  const { locks, redis } = await parties.join();
  const name = freshName();
  const list = freshName("terms");
  const leader = () => locks.election(name).leader();
  const candidates = [actors[IOREDIS], await Actor.start({ url: testUrl(), library: "node-redis" })];
  await candidates[1]?.call("runAsLeader", name, 2_000, list);
  const first = await until(leader);
  await candidates[0]?.call("runAsLeader", name, 2_000, list);
  candidates[1]?.kill();
  const second = await until(async () => {
    const one = await leader();
    return one && one.token !== first.token && one;
  });
  expect(second.token).toBeGreaterThan(first.token);
  await until(async () => (await redis.lrange(list, -1, -1))[0] === `${second.token}`);
  const terms = await redis.lrange(list, 0, -1);
  expect(terms).toEqual([...terms].sort());
});
