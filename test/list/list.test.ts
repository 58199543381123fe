import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import { ClientClosedError, type Listed, LockUnavailableError } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { clientOf } from "../../src/redis/party.ts";
import { redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { running } from "../support/result-runs.ts";
import { until } from "../support/until.ts";

const own = new OwnServer();
const { parties } = own;
const clients: { close(options: { grace: number }): Promise<void> }[] = [];
const join = async (redis: { keyPrefix?: string } = {}) =>
  (await parties.join({ url: own.url, redis })).locks;

beforeEach(() => own.admin.flushall());
afterAll(() => Promise.all(clients.map((client) => client.close({ grace: 0 }))));

async function all(listing: AsyncIterable<Listed>): Promise<Listed[]> {
  const found: Listed[] = [];
  for await (const one of listing) found.push(one);
  return found.sort((one, other) => (`${one.kind} ${one.name}` < `${other.kind} ${other.name}` ? -1 : 1));
}
const names = async (listing: AsyncIterable<Listed>) => (await all(listing)).map(({ name }) => name);

/** Holds of this client. */
const of = ({ id }: { readonly id: string }) => expect.stringMatching(new RegExp(`^${id}:\\d+$`));

const EVERY = ["lock", "readWrite", "semaphore", "election", "remember", "redisson"] as const;

/** A value that no list may show. */
const SECRET = "a refresh token";

describe("the list", () => {
  it("shows every kind with its holders and waiters, and no other keys", async () => {
    const [a, b] = [await join(), await join()];
    const lease = await a.lock("x").lock({ lease: 20_000, label: "é 1" });
    const waits = [b.lock("x").lock({ wait: 60_000 })];
    // One after the other: only a fair lock promises an order, and the first of these is not fair.
    await until(async () => (await a.lock("x").inspect()).waiters?.length === 1);
    waits.push(b.fairLock("x").lock({ wait: 60_000, label: "w" }));
    const reads = [
      await a.readWriteLock("x").read.lock(),
      await b.readWriteLock("x").read.lock({ label: "r" }),
    ];
    const writer = b.readWriteLock("x").write.lock({ wait: 60_000, label: "w" });
    await a.semaphore("x", { permits: 9 }).acquire(3, { label: "permits" });
    await a.election("x", { label: "east" }).campaign({ value: "here" });
    await redissonLock(a, "x").lock();
    await spinLock(a, "y").lock();
    await a.runOnce("x", { every: 60_000 }, () => {});
    await a.remember("done", { keep: 60_000 }, () => SECRET);
    const { run, ran } = await running(a, "x", { label: "run" });
    const result = b.remember("x", { keep: 60_000, wait: 60_000, label: "w" }, () => SECRET);
    await fencedSet(own.admin, "resource", "value", { fence: lease });
    await own.admin.hset("hash", { field: "1", other: "2" });
    await own.admin.hset("small", { field: "1" });
    await until(async () => (await a.lock("x").inspect()).waiters?.length === 2);
    await until(async () => (await a.readWriteLock("x").inspect()).waiters.length === 1);
    await until(async () => (await a.list({ kind: "remember" }).next()).value?.waiters?.length === 1);

    const found = await all(a.list({ kind: EVERY }));
    expect(found.map(({ kind, name }) => [kind, name])).toEqual([...EVERY].sort().map((kind) => [kind, "x"]));
    const [election, lock, readWrite, redisson, remember, semaphore] = found;
    expect(lock).toMatchObject({
      holder: { id: of(a), label: "é 1", pid: process.pid, token: lease.token, units: 1, mode: null },
      waiters: [
        { id: of(b), label: null },
        { id: of(b), label: "w" },
      ],
      kept: false,
      permits: null,
    });
    expect(lock?.holders).toHaveLength(1);
    expect(lock?.heldFor).toBeGreaterThanOrEqual(0);
    expect(lock?.heldFor).toBeLessThan(15_000);
    expect(lock?.remaining).toBeGreaterThan(0);
    expect(lock?.remaining).toBeLessThanOrEqual(20_000);
    expect(
      readWrite?.holders.map((one) => `${clientOf(one)} ${one.label} ${one.mode} ${one.units}`).sort(),
    ).toEqual([`${a.id} null read 1`, `${b.id} r read 1`].sort());
    expect(readWrite?.waiters).toMatchObject([{ id: of(b), label: "w", mode: "write", units: 1 }]);
    expect(semaphore).toMatchObject({
      permits: 9,
      holder: { id: of(a), label: "permits", units: 3 },
      waiters: [],
    });
    expect(election?.holder).toMatchObject({ id: of(a), label: "east" });
    expect(remember).toMatchObject({
      holder: { id: of(a), label: "run", token: run.token, units: 1, mode: null },
      waiters: [{ id: of(b), label: "w" }],
      kept: false,
      permits: null,
    });
    expect(JSON.stringify(found)).not.toContain(SECRET);
    expect(redisson).toMatchObject({ holder: { host: null, token: null }, heldFor: null, waiters: null });
    // Every hash of the database is looked at only where that was asked for.
    expect((await all(a.list())).map(({ kind }) => kind)).not.toContain("redisson");
    ran(SECRET);
    expect((await result).value).toBe(SECRET);
    expect(await names(a.list({ kind: "remember" }))).toEqual([]);
    for (const held of [lease, ...reads]) await held.unlock();
    for (const wait of [...waits, writer]) await (await wait).unlock();
  });

  it("shows a cached lock, and a free one with a waiter", async () => {
    const a = await join();
    const kept = a.lock("kept", { linger: 1_500 });
    await until(async () => {
      await (await kept.lock()).unlock();
      return (await kept.inspect()).kept;
    });
    const entry = "1 3000 0 holdfast:client:host:7:0123456789abcdef:00000009abcdefghijklm";
    await own.admin.zadd("holdfast:{free}:queue", Date.now() * 1_000, entry);
    const found = await all(a.list());
    expect(found).toMatchObject([
      {
        name: "free",
        holder: null,
        holders: [],
        heldFor: null,
        remaining: null,
        waiters: [{ pid: 7, id: "host:7:0123456789abcdef:9" }],
      },
      { name: "kept", kept: true, waiters: [] },
    ]);
  });

  it("a key of another format or type hides no other lock", async () => {
    const a = await join();
    await a.lock("fine").lock();
    await own.admin.set("holdfast:{later}", "20 0000000000000001 0000000000000001 somebody");
    await own.admin.rpush("holdfast:{list}", "1");
    expect(await names(a.list())).toEqual(["fine"]);
  });
});

it("list() shows locks with long queues by several commands, and each once", async () => {
  const { locks, redis } = await parties.join({ url: own.url });
  const mark = freshName();
  const names = ["a", "b", "c"].map((end) => `${mark}:${end}`);
  for (const name of names) {
    const lease = await locks.lock(name).lock();
    const hold = `holdfast:client:${locks.id}:${"0".repeat(21)}`;
    const entries = Array.from({ length: 700 }, (_, i) => [lease.token + i, `0 3000 0 ${hold} ${i}`]);
    await redis.zadd(`holdfast:{${name}}:queue`, ...entries.flat());
  }
  const listed = [];
  for await (const one of locks.list({ match: `${mark}:*` })) listed.push([one.name, one.waiters?.length]);
  expect(listed.sort()).toEqual(names.map((name) => [name, 700]));
  await redis.del(...names.map((name) => `holdfast:{${name}}:queue`));
});

describe("the filters match and kind", () => {
  const HARD = [
    "a*b",
    "a?b",
    "[ab]",
    "{x}",
    "}:queue",
    "50%",
    "%7B",
    "a\\b",
    "ünï ☃ 😀",
    "x:queue",
    "<script>",
    " ",
  ];

  it("find a name with any characters, also with a prefix of such", async () => {
    for (const keyPrefix of ["", "a*?[x]\\:"]) {
      const a = await join({ keyPrefix });
      for (const name of HARD) await a.lock(name).lock();
      expect(await names(a.list())).toEqual([...HARD].sort());
      for (const name of HARD) {
        const pattern = name.replace(/[\\*?[\]]/g, "\\$&");
        expect(await names(a.list({ match: pattern }))).toEqual([name]);
      }
    }
    // And no lock of another prefix.
    expect(await names((await join({ keyPrefix: "b" })).list())).toEqual([]);
  });

  it.each([
    ["order:*", ["order:1", "order:22", "order:é"]],
    ["order:?", ["order:1", "order:é"]],
    ["*2*", ["order:22", "user:2"]],
    ["order:[0-9]", ["order:1"]],
    ["order:[^0-9]", ["order:é"]],
    ["[", []],
    ["*:*:*", []],
  ])("find %s", async (match, wanted) => {
    const a = await join();
    for (const name of ["order:1", "order:22", "order:é", "user:2", "xorder:1"]) await a.lock(name).lock();
    await a.semaphore("order:9", { permits: 1 }).acquire();
    expect(await names(a.list({ match, kind: "lock" }))).toEqual(wanted);
    expect(await names(a.list({ match, kind: ["lock", "election"] }))).toEqual(wanted);
    expect(await names(a.list({ match: "order:9", kind: "semaphore" }))).toEqual(["order:9"]);
  });

  it("handle a pattern that would stall a regular expression at once", async () => {
    const a = await join();
    await a.lock("a".repeat(500)).lock();
    const since = performance.now();
    expect(await names(a.list({ match: `${"a*".repeat(200)}b` }))).toEqual([]);
    expect(performance.now() - since).toBeLessThan(1_000);
  });

  it("tell Redisson's keys from other hashes, with a prefix too", async () => {
    const a = await join({ keyPrefix: "app:" });
    await redissonLock(a, "order:1").lock();
    await own.admin.hset("app:order:2", {
      [`${"0".repeat(8)}-0000-0000-0000-${"0".repeat(12)}:1`]: 1,
      mode: "read",
    });
    await own.admin.hset("app:order:3", { name: "no lock" });
    expect(await names(a.list({ kind: "redisson", match: "order:*" }))).toEqual(["order:1"]);
  });
});

describe("the iteration", () => {
  it("shows thousands of locks, each once, while others come and go", async () => {
    const a = await join();
    const fill = Array.from({ length: 3_000 }, (_, i) => `steady:${i}`);
    const time = String(Date.now() * 1_000);
    const hold = "holdfast:client:host:7:0123456789abcdef:00000009abcdefghijklm";
    const steady = own.admin.pipeline();
    for (const name of fill) steady.set(`holdfast:{${name}}`, `10 ${time} ${time} ${hold}`, "PX", 60_000);
    await steady.exec();
    // The table grows and shrinks meanwhile, in which case SCAN names keys again.
    const found: string[] = [];
    for await (const { name } of a.list({ match: "steady:*" })) {
      found.push(name);
      const call = { 0: "'SET', 'other:' .. i, '1'", 500: "'DEL', 'other:' .. i" }[found.length % 1_000];
      if (call) await own.admin.eval(`for i = 1, 20000 do redis.call(${call}) end`, 0);
    }
    found.sort();
    expect(found).toEqual([...fill].sort());
  });

  it("leaves out a lock that ends meanwhile; leaving the loop stops the commands", async () => {
    const a = await join();
    const leases = await Promise.all(Array.from({ length: 300 }, (_, i) => a.lock(`gone:${i}`).lock()));
    const seen = new Set<string>();
    for await (const { name } of a.list()) {
      if (seen.size === 0) await Promise.all(leases.map((lease) => lease.unlock()));
      seen.add(name);
    }
    expect(seen.size).toBeLessThan(300);
    await a.lock("left").lock();
    for await (const _ of a.list()) break;
    const before = await own.admin.info("commandstats");
    await a.lock("left").inspect();
    const scans = (text: string) => /cmdstat_scan:calls=(\d+)/.exec(text)?.[1];
    expect(scans(await own.admin.info("commandstats"))).toBe(scans(before));
  });

  it("ends with the reason of an aborted signal, also while it waits", async () => {
    const a = await join();
    await a.lock("x").lock();
    const reason = new Error("enough");
    await expect(all(a.list({ signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
    const controller = new AbortController();
    const listing = a.list({ signal: controller.signal });
    expect((await listing.next()).value).toMatchObject({ name: "x" });
    controller.abort(reason);
    await expect(listing.next()).rejects.toBe(reason);
    const away = new AbortController();
    await own.admin.call("CLIENT", "PAUSE", "300", "ALL");
    const stuck = all(a.list({ signal: away.signal }));
    away.abort(reason);
    await expect(stuck).rejects.toBe(reason);
    await own.admin.ping();
  });

  it("reports a Redis that does not answer, and a closed client", async () => {
    const a = (await parties.join({ url: own.url, client: { replyTimeout: 100 } })).locks;
    await own.admin.call("CLIENT", "PAUSE", "400", "ALL");
    await expect(all(a.list())).rejects.toThrow(LockUnavailableError);
    await own.admin.ping();
    const listing = a.list();
    await a.close();
    await expect(all(listing)).rejects.toThrow(ClientClosedError);
  });

  it("refuses bad options at the call, and a client of several masters", async () => {
    const a = await join();
    const bad: [object, RegExp][] = [
      [{ match: 5 }, /match must be/],
      [{ match: "" }, /match must be a non-empty string/],
      [{ match: "x".repeat(2_000) }, /1024 characters/],
      [{ kind: "spin" }, /kind must be one or several of lock, readWrite/],
      [{ kind: [] }, /kind must be/],
      [{ limit: 5 }, /unknown option 'limit'; known are match, kind, signal/],
    ];
    for (const [options, message] of bad) expect(() => a.list(options)).toThrow(message);
    const masters = await Promise.all([1, 2, 3].map(() => parties.join({ url: own.url })));
    const quorum = createQuorumClient(masters.map(({ redis }) => redis));
    clients.push(quorum);
    expect(() => (quorum as unknown as typeof a).list()).toThrow(/Cannot list locks of several masters/);
    expect(freshName()).not.toBe("");
  });
});
