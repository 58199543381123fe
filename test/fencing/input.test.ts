import { Cluster, Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fencedEval, fencedSet } from "../../src/fencing/index.ts";

// Bad input of fenced writes is refused before anything is sent, by its name.

type Loose = (...args: unknown[]) => Promise<unknown>;
const [set, run] = [fencedSet as Loose, fencedEval as Loose];

// It would connect with the first command: as long as it waits, nothing was sent.
let redis: Redis;
beforeEach(() => {
  redis = new Redis({ lazyConnect: true, port: 1, retryStrategy: null });
});
afterEach(() => {
  expect(redis.status, "nothing was sent").toBe("wait");
});

const FENCE = "fence must be a lease or its token, a whole number from 1 to 2^53-1, received";
const REMEMBER = "remember must be a whole number of milliseconds from 1000 to 2^42, or Infinity, received";
const TTL = "ttl must be a whole number of milliseconds from 1 to 2^42, received";
const REPLY = "replyTimeout must be a whole number of milliseconds from 10 to 2^31-1, received";

/** How a call is refused. */
const refusal = (call: Promise<unknown>) =>
  call.then(
    () => "not refused",
    (error: unknown) => String(error),
  );

describe("options of both functions", () => {
  it.each<[object | undefined | null | number, string]>([
    [undefined, `TypeError: ${FENCE} undefined`],
    [{}, `TypeError: ${FENCE} undefined`],
    [{ fence: "5" }, `TypeError: ${FENCE} '5'`],
    [{ fence: 5n }, `TypeError: ${FENCE} 5`],
    [{ fence: null }, `TypeError: ${FENCE} null`],
    [{ fence: {} }, `TypeError: ${FENCE} an object`],
    [{ fence: { token: 5 } }, `TypeError: ${FENCE} an object`],
    [
      { fence: { assertHeld: () => {} } },
      "TypeError: fence is a lease that has no fencing token: permits, spinLock and the plain redissonLock have none; redissonFencedLock has",
    ],
    [{ fence: -1 }, `RangeError: ${FENCE} -1`],
    [{ fence: 1.5 }, `RangeError: ${FENCE} 1.5`],
    [{ fence: Number.NaN }, `RangeError: ${FENCE} NaN`],
    [{ fence: 2 ** 53 }, `RangeError: ${FENCE} 9007199254740992`],
    [{ fence: 0 }, `RangeError: ${FENCE} 0`],
    [{ fence: 1, resource: "" }, "RangeError: resource must be a non-empty string, received ''"],
    [{ fence: 1, resource: 5 }, "TypeError: resource must be a string, received 5"],
    [{ fence: 1, remember: 999 }, `RangeError: ${REMEMBER} 999`],
    [{ fence: 1, remember: 2 ** 42 + 1 }, `RangeError: ${REMEMBER} ${2 ** 42 + 1}`],
    [{ fence: 1, remember: "1d" }, `TypeError: ${REMEMBER} '1d'`],
    [
      { fence: 1, remember: 1_000 },
      "RangeError: remember must be Infinity for a token that is a counter, received 1000",
    ],
    [{ fence: 1, replyTimeout: 0 }, `RangeError: ${REPLY} 0`],
    [{ fence: 1, replyTimeout: Number.POSITIVE_INFINITY }, `RangeError: ${REPLY} Infinity`],
    [5, "TypeError: options must be an object, received 5"],
    [null, "TypeError: options must be an object, received null"],
  ])("refuse %o", async (options, message) => {
    const told = message.replace(": ", ": Cannot write 'x': ");
    expect(await refusal(set(redis, "x", "v", options))).toBe(told);
    const script = typeof options === "object" && options ? { keys: ["x"], ...options } : options;
    if (options !== undefined)
      expect(await refusal(run(redis, "return 1", script))).toBe(
        message.replace(": ", ": Cannot run a script behind a fence: "),
      );
  });

  it("report an unknown option with the known ones", async () => {
    expect(await refusal(set(redis, "x", "v", { fence: 1, px: 5 }))).toBe(
      "TypeError: Cannot write 'x': unknown option 'px'; known are fence, resource, prefix, remember, replyTimeout, ttl",
    );
    expect(await refusal(run(redis, "return 1", { fence: 1, ttl: 5 }))).toMatch(/unknown option 'ttl'/);
  });

  it("are refused without a connection", async () => {
    for (const none of [undefined, null, 5, {}, "redis://"]) {
      const told = /redis must be an ioredis connection/;
      expect(await refusal(set(none, "x", "v", { fence: 1 }))).toMatch(told);
      expect(await refusal(run(none, "return 1", { fence: 1, resource: "x" }))).toMatch(told);
    }
  });
});

describe("fencedSet", () => {
  it.each<[unknown, string]>([
    ["", "RangeError: Cannot write behind a fence: key must be a non-empty string, received ''"],
    [5, "TypeError: Cannot write behind a fence: key must be a string, received 5"],
    [
      "\ud83d",
      "RangeError: Cannot write behind a fence: key must be a well-formed string, received '\\ud83d'",
    ],
  ])("refuses the key %o", async (key, message) => {
    expect(await refusal(set(redis, key, "v", { fence: 1 }))).toBe(message);
  });

  it.each([[undefined], [null], [{}], [["a"]], [true], [Number.NaN], [5n]])(
    "refuses the value %o",
    async (value) => {
      const told =
        /^TypeError: Cannot write 'x': value must be a string, a finite number or a Buffer, received/;
      expect(await refusal(set(redis, "x", value, { fence: 1 }))).toMatch(told);
    },
  );

  it.each([
    [0, `RangeError: Cannot write 'x': ${TTL} 0`],
    [Number.POSITIVE_INFINITY, `RangeError: Cannot write 'x': ${TTL} Infinity`],
    ["5", `TypeError: Cannot write 'x': ${TTL} '5'`],
  ])("refuses the ttl %o", async (ttl, message) => {
    expect(await refusal(set(redis, "x", "v", { fence: 1, ttl }))).toBe(message);
  });
});

describe("fencedEval", () => {
  const what = "TypeError: Cannot run a script behind a fence";
  it.each<[unknown, object, string]>([
    [
      "",
      {},
      "RangeError: Cannot run a script behind a fence: script must be a non-empty string, received ''",
    ],
    [5, {}, `${what}: script must be a string, received 5`],
    ["return 1", { keys: "x" }, `${what}: keys must be an array, received 'x'`],
    ["return 1", { keys: [5] }, `${what}: keys[0] must be a string, received 5`],
    ["return 1", { keys: [undefined] }, `${what}: keys[0] must be a string, received undefined`],
    ["return 1", { args: "x" }, `${what}: args must be an array, received 'x'`],
    [
      "return 1",
      { args: ["a", null] },
      `${what}: args[1] must be a string, a finite number or a Buffer, received null`,
    ],
    [
      "return 1",
      {},
      `${what}: resource must be the name of what the fence protects, where there is not exactly one key, received undefined`,
    ],
    [
      "return 1",
      { keys: ["a", "b"] },
      `${what}: resource must be the name of what the fence protects, where there is not exactly one key, received undefined`,
    ],
  ])("refuses %o %o", async (script, options, message) => {
    expect(await refusal(run(redis, script, { fence: 1, ...options }))).toBe(message);
  });
});

describe("in Cluster", () => {
  const cluster = (keyPrefix = "") =>
    new Cluster([{ host: "127.0.0.1", port: 1 }], { lazyConnect: true, keyPrefix });

  it("reports keys with another slot than the resource", async () => {
    const redis = cluster();
    expect(await refusal(run(redis, "return 1", { keys: ["{a}1", "b"], fence: 1, resource: "a" }))).toBe(
      "RangeError: Cannot run a script behind a fence: in Cluster the key 'b' must have the hash slot of the resource 'a'; give both the same {tag}",
    );
    expect(await refusal(set(redis, "x", "v", { fence: 1, resource: "y" }))).toMatch(/the key 'x' must have/);
    expect(redis.status).toBe("wait");
  });

  it("reports a prefix with an empty tag", async () => {
    const redis = cluster("a{}b:");
    expect(await refusal(set(redis, "x", "v", { fence: 1 }))).toMatch(
      /prefix 'a\{\}b:'.*different hash slots/,
    );
    expect(redis.status).toBe("wait");
  });
});
