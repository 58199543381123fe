import { afterAll, beforeAll, expect, it } from "vitest";
import { fencedEval, fencedSet } from "../../src/fencing/index.ts";
import { createLockClient } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import type { Connection } from "../support/servers/connection.ts";
import { topologies } from "../support/servers/kinds.ts";
import type { Topology } from "../support/servers/topology.ts";
import { describeOnWanted } from "../support/servers/wanted.ts";

// Fenced writes wherever Redis runs: the fence lies in the slot of its resource, whatever braces
// the names have.

describeOnWanted(topologies, ({ launch }) => {
  let topology: Topology;
  let redis: Connection;
  const token = Date.now() * 1_000;

  beforeAll(async () => {
    topology = await launch();
    redis = topology.connect();
  });
  afterAll(() => topology?.stop());

  it.each(["", "}", "{", "{}", "}{", "{a}", "{a", "a}b{c}", "{}{a}", "%7B", " ", "é🔒", "\0"])(
    "a key that ends in %j: a larger token is written, a smaller one refused",
    async (end) => {
      const key = freshName() + end;
      await fencedSet(redis, key, "a", { fence: token });
      await fencedEval(redis, "return redis.call('SET', KEYS[1], 'b')", { keys: [key], fence: token + 1 });
      expect(await failure(fencedSet(redis, key, "c", { fence: token }))).toMatchObject({ seen: token + 1 });
      expect(await redis.get(key)).toBe("b");
    },
  );

  it("many keys of one resource have one tag", async () => {
    const name = freshName();
    const locks = createLockClient(redis);
    const resource = `{${name}}`;
    const keys = ["status", "items"].map((part) => `${resource}:${part}`);
    const both = "for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1]) end return #KEYS";
    await locks.lock(name).withLock(async (fence) => {
      expect(await fencedEval(redis, both, { keys, args: ["a"], fence, resource })).toBe(2);
    });
    const stale = { keys, args: ["b"], fence: token - 60_000_000, resource };
    expect(await failure(fencedEval(redis, both, stale))).toMatchObject({ code: "STALE_TOKEN" });
    expect(await Promise.all(keys.map((key) => redis.get(key)))).toEqual(["a", "a"]);
    await locks.close();
  });

  it("a script's own PUBLISH stays as it is", async () => {
    const name = freshName();
    const reader = topology.connect();
    await reader.subscribe(name);
    const heard = new Promise((resolve) => reader.on("message", (_, message) => resolve(message)));
    await fencedEval(redis, 'return redis.call("PUBLISH", ARGV[1], "hello")', {
      args: [name],
      fence: token,
      resource: name,
    });
    expect(await heard).toBe("hello");
    reader.disconnect();
  });
});
