import { Redis as Redis5 } from "ioredis5";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { fencedEval, fencedSet } from "../../src/fencing/index.ts";
import { seeded } from "../../tools/numbers.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties, type Party, testUrl } from "../support/fixture.ts";
import { serverIs } from "../support/server-version.ts";

// The resource decides: a token that is smaller than it has seen writes nothing, at whatever moment it comes.

const DAY = 86_400_000;
const parties = new Parties();
let party: Party;
let key: string;
/** A token as it was given this many ms ago. */
const ago = (ms: number) => (Date.now() - ms) * 1_000;
let token: number;

beforeAll(async () => {
  party = await parties.join();
});
beforeEach(() => {
  key = freshName("fenced");
  token = ago(1_000);
});
afterEach(async () => {
  await party.redis.del(key, `holdfast:fence:${key}`);
});
afterAll(parties.close);

const state = async () => ({
  value: await party.redis.get(key),
  left: await party.redis.pttl(key),
  fence: await party.redis.get(`holdfast:fence:${key}`),
});

describe("fencedSet", () => {
  const set = (value: string | number | Buffer, fence: number, more: object = {}) =>
    fencedSet(party.redis, key, value, { fence, ...more });

  it("writes with the first token, the same one again, and larger ones", async () => {
    for (const [value, fence] of [
      ["a", token],
      ["b", token],
      ["c", token + 1],
      ["d", token + 9],
    ] as const) {
      expect(await set(value, fence)).toBeUndefined();
      expect(await state()).toEqual({ value, left: -1, fence: `${fence}` });
    }
  });

  it("refuses a smaller token and writes nothing, however often it comes", async () => {
    await set("new", token, { ttl: 60_000 });
    for (let n = 0; n < 2; n++) {
      const error = await failure(set("old", token - 1));
      expect(error).toMatchObject({
        name: "StaleTokenError",
        code: "STALE_TOKEN",
        lockName: null,
        resource: key,
        token: token - 1,
        seen: token,
      });
      const { value, left, fence } = await state();
      expect([value, fence]).toEqual(["new", `${token}`]);
      expect(left).toBeGreaterThan(50_000);
    }
  });

  it("compares all digits of the largest tokens", async () => {
    const most = Number.MAX_SAFE_INTEGER;
    await set("a", most - 1);
    await set("b", most);
    expect(await failure(set("c", most - 1))).toMatchObject({ seen: most });
    expect((await state()).fence).toBe("9007199254740991");
  });

  it("sets a time to live, and removes it like SET", async () => {
    await set("a", token, { ttl: 60_000 });
    expect((await state()).left).toBeGreaterThan(50_000);
    await set("b", token);
    expect((await state()).left).toBe(-1);
  });

  it("writes bytes and numbers as they are", async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 128]);
    await set(bytes, token);
    expect(await party.redis.getBuffer(key)).toEqual(bytes);
    await set(4.5, token);
    expect((await state()).value).toBe("4.5");
    await set("", token);
    expect((await state()).value).toBe("");
  });

  it("overwrites whatever the key holds, like SET", async () => {
    await party.redis.rpush(key, "a");
    await set("b", token);
    expect((await state()).value).toBe("b");
  });
});

describe("fencedEval", () => {
  const run = (script: string, more: object = {}) =>
    fencedEval(party.redis, script, { keys: [key], fence: token, ...more });

  it("passes the script its own KEYS and ARGV, and returns its answer", async () => {
    const args = ["a", 2, Buffer.from([255])];
    expect(await run("return { #KEYS, KEYS[1], #ARGV, ARGV[1], ARGV[2], #ARGV[3] }", { args })).toEqual([
      1,
      key,
      3,
      "a",
      "2",
      1,
    ]);
    expect(await run("return { #KEYS, #ARGV }", { keys: [], resource: key })).toEqual([0, 0]);
    expect(await run("return redis.call('GET', KEYS[1])")).toBeNull();
    expect(await run("local nothing = 1")).toBeNull();
  });

  it("does not run the script with a smaller token", async () => {
    const push = "return redis.call('RPUSH', KEYS[1], ARGV[1])";
    expect(await run(push, { args: ["a"] })).toBe(1);
    expect(await failure(run(push, { args: ["b"], fence: token - 1 }))).toMatchObject({
      code: "STALE_TOKEN",
      token: token - 1,
      resource: key,
      seen: token,
    });
    expect(await run(push, { args: ["c"], fence: token + 1 })).toBe(2);
    expect(await party.redis.lrange(key, 0, -1)).toEqual(["a", "c"]);
  });

  it("shares the fence of fencedSet", async () => {
    await fencedSet(party.redis, key, "a", { fence: token });
    expect(await failure(run("return 1", { fence: token - 1 }))).toMatchObject({ code: "STALE_TOKEN" });
  });

  it("reports the script's own error, with its line, and remembers the token", async () => {
    const error = await failure(run("redis.call('SET', KEYS[1], 'a')\nlocal x = nil + 1"));
    expect(error).toMatchObject({ name: "FencedWriteError", code: "FENCED_WRITE_FAILED", resource: key });
    expect(String((error as Error).cause)).toMatch(/user_script:2:/);
    expect(await state()).toMatchObject({ value: "a", fence: `${token}` }); // Redis undoes nothing
    const own = await failure(run("return redis.error_reply('POOR too little money')"));
    expect(own).toMatchObject({ cause: { message: expect.stringContaining("POOR too little money") } });
    expect(await failure(run("this is not Lua"))).toMatchObject({ code: "FENCED_WRITE_FAILED" });
  });

  it.skipIf(!serverIs("7.0"))("keeps a #! line the first one", async () => {
    expect(await run("#!lua flags=allow-oom\nreturn #KEYS")).toBe(1);
    const error = await failure(run("#!lua\nlocal a = 1\nlocal x = nil + 1"));
    expect(String((error as Error).cause)).toMatch(/user_script:3:/);
    expect(await failure(run("#!lua flags=no-writes\nreturn 1"))).toMatchObject({
      cause: { message: expect.stringContaining("Write commands are not allowed") },
    });
  });

  it("accepts a script that begins or ends with a comment, or declares many locals", async () => {
    expect(await run("-- first\nreturn 1 -- last")).toBe(1);
    expect(await run("local fence, token, seen = 1, 2, 3 return fence + token + seen")).toBe(6);
    // What the check has names for, it keeps to itself.
    for (const name of ["fence", "token", "seen", "ttl"])
      expect(String(await failure(run(`return ${name}`)))).toContain(`nonexistent global variable '${name}'`);
  });
});

describe("the fence", () => {
  const fenceOf = (name: string) => `holdfast:fence:${name}`;

  it("is remembered for a day after the last write, and a minute for the clocks", async () => {
    const left = () => party.redis.pttl(fenceOf(key));
    await fencedSet(party.redis, key, "a", { fence: token });
    expect(await left()).toBeGreaterThan(DAY + 50_000);
    expect(await left()).toBeLessThanOrEqual(DAY + 60_000);
    await fencedSet(party.redis, key, "b", { fence: token, remember: 5_000 });
    expect(await left()).toBeLessThanOrEqual(65_000);
    await fencedSet(party.redis, key, "c", { fence: token, remember: 30 * DAY });
    expect(await left()).toBeGreaterThan(30 * DAY);
    await fencedSet(party.redis, key, "d", { fence: token, remember: Number.POSITIVE_INFINITY });
    expect(await left()).toBe(-1);
  });

  it("refuses a token that is older than the memory of a fence, when none is stored", async () => {
    await fencedSet(party.redis, key, "new", { fence: token });
    await party.redis.del(fenceOf(key)); // its time is over
    const late = failure(fencedSet(party.redis, key, "old", { fence: ago(DAY + 1_000) }));
    expect(await late).toMatchObject({ code: "STALE_TOKEN", seen: null });
    expect(await state()).toMatchObject({ value: "new", fence: null });
    await fencedSet(party.redis, key, "in time", { fence: ago(DAY - 60_000) });
    // A holder that has written within that time goes on, however old its token is.
    await fencedSet(party.redis, key, "again", { fence: ago(DAY - 60_000) + 1, remember: 1_000 });
    expect((await state()).value).toBe("again");
  });

  it("accepts counters of another origin when it remembers without limit", async () => {
    const counter = (fence: number) =>
      fencedSet(party.redis, key, `${fence}`, { fence, remember: Number.POSITIVE_INFINITY });
    await counter(1);
    await counter(2);
    expect(await failure(counter(1))).toMatchObject({ seen: 2 });
    expect((await state()).value).toBe("2");
  });

  it("of a named resource guards many keys; without a name each has its own", async () => {
    const [one, two] = [`{${key}}:1`, `{${key}}:2`];
    const both = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[1])";
    await fencedEval(party.redis, both, { keys: [one, two], args: ["a"], fence: token, resource: key });
    const stale = { fence: token - 1, resource: key };
    for (const name of [one, two])
      expect(await failure(fencedSet(party.redis, name, "b", stale))).toMatchObject({ resource: key });
    expect(await party.redis.mget(one, two)).toEqual(["a", "a"]);
    await fencedSet(party.redis, one, "b", { fence: token - 1 });
    expect(await party.redis.mget(one, two)).toEqual(["b", "a"]);
    await party.redis.del(one, two, fenceOf(one));
  });

  it("gets the connection's prefix, as the key does", async () => {
    const { redis } = await parties.join({ redis: { keyPrefix: "test:app:" } });
    await fencedSet(redis, key, "a", { fence: token });
    expect(await party.redis.get(`test:app:${key}`)).toBe("a");
    expect(await party.redis.get(`test:app:${fenceOf(key)}`)).toBe(`${token}`);
    expect(await failure(fencedSet(redis, key, "b", { fence: token - 1 }))).toMatchObject({ seen: token });
    await redis.del(key, fenceOf(key));
  });

  it("works on ioredis 5", async () => {
    const redis = new Redis5(testUrl());
    await fencedSet(redis, key, "a", { fence: token });
    expect(await failure(fencedSet(redis, key, "b", { fence: token - 1 }))).toMatchObject({ seen: token });
    expect(await fencedEval(redis, "return 1", { keys: [key], fence: token })).toBe(1);
    redis.disconnect();
  });

  it("stops the write if its key has another type", async () => {
    for (const spoil of [
      () => party.redis.set(fenceOf(key), "12x"),
      () => party.redis.rpush(fenceOf(key), "a"),
    ]) {
      await party.redis.del(fenceOf(key));
      await spoil();
      expect(await failure(fencedSet(party.redis, key, "a", { fence: token }))).toMatchObject({
        code: "FENCED_WRITE_FAILED",
        cause: { message: expect.stringContaining("WRONGTYPE") },
      });
      expect(await party.redis.get(key)).toBeNull();
    }
  });

  it("adds no listeners from write to write", async () => {
    const { redis } = await parties.join();
    await fencedSet(redis, key, "a", { fence: token });
    const count = () => redis.eventNames().reduce((sum, name) => sum + redis.listenerCount(name), 0);
    const before = count();
    for (let n = 0; n < 20; n++) await fencedSet(redis, key, "a", { fence: token });
    expect(count()).toBe(before);
  });

  it("is atomic with the write: of racing writers none overwrites a later one", async ({ annotate }) => {
    const seed = Date.now() % 1_000_000;
    await annotate(`seed ${seed}`);
    const random = seeded(seed);
    const connections = await Promise.all([1, 2, 3, 4].map(async () => (await parties.join()).redis));
    const push = "return redis.call('RPUSH', KEYS[1], ARGV[1])";
    const outcomes = await Promise.all(
      Array.from({ length: 400 }, (_, n) => {
        const fence = token + Math.floor(random() * 200);
        const redis = connections[n % connections.length] as (typeof connections)[number];
        return fencedEval(redis, push, { keys: [key], args: [fence], fence }).then(
          () => true,
          (error) => error.code,
        );
      }),
    );
    const written = (await party.redis.lrange(key, 0, -1)).map(Number);
    expect(written).toEqual([...written].sort((a, b) => a - b));
    expect(written.length).toBe(outcomes.filter((outcome) => outcome === true).length);
    expect(outcomes.filter((outcome) => outcome === "STALE_TOKEN").length).toBe(400 - written.length);
    expect(written.length).toBeLessThan(400); // some did come late
  });
});
