import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fencedEval, fencedSet } from "../../src/fencing/index.ts";
import { FencedWriteError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Redis refuses, is silent or away while a fenced write is on its way: a typed error in time, and
// no half of a write.

const stage = new Stage();
let key: string;
const token = Date.now() * 1_000;
const written = () => stage.far.redis.mget(key, `holdfast:fence:${key}`);
const write = (redis: Redis, more: object = {}) => fencedSet(redis, key, "a", { fence: token, ...more });
const refused = (text: string) => ({
  name: "FencedWriteError",
  code: "FENCED_WRITE_FAILED",
  resource: key,
  cause: { message: expect.stringContaining(text) },
});

beforeEach(() => {
  key = freshName("fenced");
});

it("fencedEval sends the text to a server that does not know it, or has forgotten it", async () => {
  const { redis } = stage.far;
  const run = () => fencedEval(redis, "return redis.call('INCR', KEYS[1])", { keys: [key], fence: token });
  expect(await run()).toBe(1);
  await redis.script("FLUSH");
  expect(await run()).toBe(2);
});

describe("Redis refuses", () => {
  afterEach(async () => {
    const { redis } = stage.far;
    await redis.config("SET", "maxmemory", "0");
    await redis.config("SET", "min-replicas-to-write", "0");
    await redis.call("ACL", "DELUSER", "writer");
  });

  it.each([
    ["when it is full", "OOM", "maxmemory", "1"],
    ["when it lacks replicas", "NOREPLICAS", "min-replicas-to-write", "1"],
  ])("%s: nothing is written", async (_, text, setting, value) => {
    const { redis } = stage.far;
    await redis.config("SET", setting, value);
    expect(await failure(write(redis))).toMatchObject(refused(text));
    const pushing = fencedEval(redis, "return redis.call('RPUSH', KEYS[1], 1)", {
      keys: [key],
      fence: token,
    });
    expect(await failure(pushing)).toMatchObject(refused(text));
    expect(await written()).toEqual([null, null]);
    await redis.config("SET", setting, "0");
    await write(redis);
    expect(await written()).toEqual(["a", `${token}`]);
  });

  it.each([
    ["the fence's key", ["~test:*", "+@all"]],
    ["GET", ["~*", "+@all", "-get"]],
    ["SET", ["~*", "+@all", "-set"]],
    ["TIME", ["~*", "+@all", "-time"]],
    ["EVAL and EVALSHA", ["~*", "+@all", "-eval", "-evalsha"]],
  ])("a user without the right to %s: nothing is written", async (_, rules) => {
    await stage.far.redis.call("ACL", "SETUSER", "writer", "on", ">secret", ...rules);
    const { redis } = await stage.join({
      redis: { username: "writer", password: "secret", lazyConnect: true },
    });
    expect(await failure(write(redis))).toMatchObject({
      code: "FENCED_WRITE_FAILED",
      // Inside of a script Redis 7.0 has other words for it.
      cause: { message: expect.stringMatching(/NOPERM|can't run this command/) },
    });
    expect(await written()).toEqual([null, null]);
  });

  it("a user with the documented rights may write", async () => {
    const rules = [
      "~test:*",
      "~holdfast:fence:*",
      "-@all",
      "+eval",
      "+evalsha",
      "+get",
      "+set",
      "+time",
      "+info",
    ];
    await stage.far.redis.call("ACL", "SETUSER", "writer", "on", ">secret", ...rules);
    const { redis } = await stage.join({
      redis: { username: "writer", password: "secret", lazyConnect: true },
    });
    await write(redis);
    expect(await failure(write(redis, { fence: token - 1 }))).toMatchObject({ code: "STALE_TOKEN" });
    expect(await written()).toEqual(["a", `${token}`]);
  });

  it("a write to data that it denies: the fence advances, and nothing is written", async () => {
    await stage.far.redis.call(
      "ACL",
      "SETUSER",
      "writer",
      "on",
      ">secret",
      "~holdfast:fence:*",
      `%R~${key}`,
      "+@all",
    );
    const { redis } = await stage.join({
      redis: { username: "writer", password: "secret", lazyConnect: true },
    });
    expect(await failure(write(redis))).toMatchObject({ code: "FENCED_WRITE_FAILED" });
    expect(await written()).toEqual([null, null]);
  });
});

describe("without an answer", () => {
  it("within replyTimeout, the call rejects; the write may happen once, and counts", async () => {
    const { near, proxy } = stage;
    proxy.freeze();
    const started = performance.now();
    const error = await failure(write(near.redis, { replyTimeout: 200 }));
    expect(error).toMatchObject(refused("did not answer within 200 ms"));
    expect(performance.now() - started).toBeLessThan(3_000); // ioredis would wait for ever
    proxy.thaw();
    await until(async () => (await written())[0] === "a");
    expect(await failure(write(near.redis, { fence: token - 1 }))).toMatchObject({ code: "STALE_TOKEN" });
  });

  it("a copy that arrives after a later holder's write changes nothing", async () => {
    const { near, far, proxy } = stage;
    proxy.freeze();
    await failure(write(near.redis, { replyTimeout: 100 }));
    await fencedSet(far.redis, key, "later", { fence: token + 1 });
    proxy.thaw();
    await near.redis.ping(); // behind it, on the same connection
    expect(await written()).toEqual(["later", `${token + 1}`]);
  });

  it("from a closed connection, the call rejects at once", async () => {
    const redis = new Redis(stage.server.url);
    await redis.ping();
    redis.disconnect();
    expect(await failure(write(redis))).toMatchObject(refused("Connection is closed"));
  });

  it("inside MULTI, the error says that the command was queued", async () => {
    const redis = new Redis(stage.server.url);
    await redis.call("MULTI");
    expect(await failure(write(redis))).toBeInstanceOf(FencedWriteError);
    expect(await written()).toEqual([null, null]);
    redis.disconnect();
  });

  it("from an empty script cache, after a restart, the text is sent again", async () => {
    const { far } = stage;
    await write(far.redis);
    await stage.server.restart();
    await until(() => far.redis.status === "ready");
    await write(far.redis);
    expect(await written()).toEqual(["a", `${token}`]);
  });
});
