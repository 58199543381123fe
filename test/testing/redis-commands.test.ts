import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, expect, it } from "vitest";
import { type Reply, Status } from "../../src/tools/testing/keyspace.ts";
import { MemoryRedis } from "../../src/tools/testing/memory-redis.ts";
import { commands } from "../../src/tools/testing/redis-commands.ts";
import { testUrl } from "../support/fixture.ts";

// The same random commands to the Redis in memory and to a real one: equal replies.

// The replies that scripts get.
const redis = new Redis(testUrl(), { protocol: 2 });
afterAll(() => redis.disconnect());

/** Keys of a run stand after its own prefix. All members of `t` have one score. */
const KEY = fc.constantFrom("{key}a", "{key}b", "{key}c");
const MEMBER = fc.constantFrom("a", "b", "ab", "B", "", "é", "x y", "1");
const VALUE = fc.oneof(MEMBER, fc.constantFrom("0", "7", "-3", "9007199254740000", "1.5", " 1", "+1", "01"));
/** Ends are far away: none comes during a run, and each is known by its size. */
const MS = fc.constantFrom("1000000", "10000000", "100000000");
const NO_MS = fc.constantFrom("0", "-5", "x", "1.5", "");
const SCORE = fc.oneof(
  fc.integer({ min: -9, max: 9 }).map(String),
  fc.constantFrom("0.5", "-2.25", "1700000000000001", "inf", "-inf", "+inf", "x", "", "1e3"),
  fc.constantFrom(".5", "5.", " 5", "5 ", "infinity", "0b1", "nan"),
);
const PLACE = fc.oneof(
  { weight: 9, arbitrary: fc.integer({ min: -5, max: 5 }).map(String) },
  fc.constant("x"),
);
const LIMIT = fc.oneof(
  SCORE,
  SCORE.map((score) => `(${score}`),
);
const TEXT_LIMIT = fc.constantFrom("[a", "(a", "[ab", "(b", "[", "(B", "[x y");

const STREAM_ID = fc.constantFrom("1-1", "1-2", "1", "2-0", "5-3", "9", "9-9", "0-0", "x", "");
const STREAM_LIMIT = fc.oneof(STREAM_ID, fc.constantFrom("(1-1", "(2", "(5-3", "7"));

type Words = fc.Arbitrary<string[]>;
const words = (...parts: fc.Arbitrary<string>[]): Words => fc.tuple(...parts);
/** One part after the other. */
const joined = (...parts: Words[]): Words => fc.tuple(...parts).map((all) => all.flat());
const several = (part: fc.Arbitrary<string>, most = 3): Words =>
  fc.array(part, { minLength: 1, maxLength: most });
const some = (part: Words): Words => fc.oneof(fc.constant<string[]>([]), part);
const is = (...text: string[]): Words => fc.constant(text);

/** The arguments of each command, sometimes wrong ones. */
const GIVEN: Readonly<Record<string, Words>> = {
  TIME: is(),
  DEL: several(KEY),
  EXISTS: several(KEY),
  PTTL: words(KEY),
  PEXPIRE: words(KEY, fc.oneof({ weight: 4, arbitrary: MS }, NO_MS)),
  PERSIST: words(KEY),
  SCAN: joined(is("0", "MATCH", "{key}*", "COUNT", "1000000"), some(is("TYPE", "hash"))),
  GET: words(KEY),
  SET: joined(
    words(KEY, VALUE),
    some(
      fc.oneof(
        is("NX"),
        is("XX"),
        is("KEEPTTL"),
        words(fc.constant("PX"), fc.oneof(MS, NO_MS)),
        words(fc.constant("NX"), fc.constant("PX"), MS),
        words(fc.constant("PX"), MS, fc.constant("xx")),
      ),
    ),
  ),
  GETSET: words(KEY, VALUE),
  SETRANGE: words(KEY, fc.constantFrom("0", "1", "3", "-1", "x"), VALUE),
  INCR: words(KEY),
  HGET: words(KEY, MEMBER),
  HMGET: joined(words(KEY), several(MEMBER)),
  HSET: joined(
    words(KEY),
    several(words(MEMBER, VALUE) as never).map((pairs) => pairs.flat()),
    some(words(MEMBER)),
  ),
  HDEL: joined(words(KEY), several(MEMBER)),
  HEXISTS: words(KEY, MEMBER),
  HGETALL: words(KEY),
  HKEYS: words(KEY),
  HLEN: words(KEY),
  ZADD: fc.oneof(
    joined(
      is("{key}t"),
      fc.array(MEMBER, { minLength: 1 }).map((all) => all.flatMap((one) => ["0", one])),
    ),
    joined(
      words(KEY),
      some(is("NX")),
      fc.array(words(SCORE, MEMBER), { minLength: 1, maxLength: 3 }).map((pairs) => pairs.flat()),
      some(words(fc.constant("5"))),
    ),
  ),
  ZREM: joined(words(KEY), several(MEMBER)),
  ZSCORE: words(KEY, MEMBER),
  ZMSCORE: joined(words(KEY), several(MEMBER)),
  ZCARD: words(KEY),
  ZRANK: words(KEY, MEMBER),
  ZREVRANK: words(KEY, MEMBER),
  ZRANGE: fc.oneof(
    joined(words(KEY, PLACE, PLACE), some(is("WITHSCORES"))),
    joined(
      words(fc.constant("{key}t"), TEXT_LIMIT, TEXT_LIMIT),
      is("BYLEX"),
      some(words(fc.constant("LIMIT"), fc.constantFrom("0", "1"), fc.constantFrom("1", "2", "16"))),
    ),
  ),
  ZPOPMIN: joined(words(KEY), some(words(fc.constantFrom("0", "1", "3", "x")))),
  ZREMRANGEBYRANK: words(KEY, PLACE, PLACE),
  ZREMRANGEBYSCORE: words(KEY, LIMIT, LIMIT),
  XADD: joined(
    words(KEY),
    some(joined(is("MAXLEN"), some(is("=")), words(fc.constantFrom("0", "1", "3", "-1", "x")))),
    words(STREAM_ID),
    several(words(MEMBER, VALUE) as never, 2).map((pairs) => pairs.flat()),
    some(words(MEMBER)),
  ),
  XRANGE: joined(
    words(KEY, fc.oneof(STREAM_LIMIT, fc.constant("-")), fc.oneof(STREAM_LIMIT, fc.constant("+"))),
    some(words(fc.constant("COUNT"), fc.constantFrom("0", "1", "2", "-1", "x"))),
  ),
  PUBLISH: words(KEY, VALUE),
  PUBSUB: joined(is("NUMSUB"), several(KEY)),
  INFO: is(),
};

const COMMAND = fc
  .constantFrom(...Object.keys(GIVEN))
  .chain((name) => (GIVEN[name] as Words).map((given) => [name, ...given]));

/** With a character for each byte. */
const bytes = (text: string): string => Buffer.from(text).toString("latin1");

const errorOf = (error: unknown): object => ({ error: /^\w+/.exec((error as Error).message)?.[0] });

/** Of both alike. An error is known by its code: Redis's words differ between versions. */
function plain(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString("latin1");
  if (reply instanceof Status) return reply.ok;
  if (reply instanceof Error) return errorOf(reply);
  return Array.isArray(reply) ? reply.map(plain) : reply;
}

function inMemory(memory: MemoryRedis, command: readonly string[]): Reply | object {
  try {
    return memory.call(command.map(bytes));
  } catch (error) {
    if ((error as Error).name === "ReplyError") return errorOf(error);
    throw error;
  }
}

/** What is compared of a reply. */
function comparable([name]: readonly string[], reply: unknown): unknown {
  const shown = plain(reply);
  // Ends are some seconds apart: which one it is shows its order of magnitude.
  if (name === "PTTL" && typeof shown === "number" && shown > 0) return `1e${Math.round(Math.log10(shown))}`;
  if (name === "TIME") return (shown as string[]).map((part) => /^\d+$/.test(part));
  if (name === "SCAN") return ((shown as [string, string[]])[1] ?? []).sort();
  // Hashes have no order that a script may rely on.
  if (name === "HKEYS") return (shown as string[]).sort?.() ?? shown;
  if (name === "HGETALL" && Array.isArray(shown))
    return shown.flatMap((field, i) => (i % 2 === 0 ? [[field, shown[i + 1]]] : [])).sort();
  if (name === "INFO")
    return /redis_version:[\d.]+\r\n/.test(String(shown)) && /role:master\r\n/.test(String(shown));
  return shown;
}

it("every command of the memory is tried", () => {
  expect(Object.keys(GIVEN).sort()).toEqual(Object.keys(commands).sort());
});

it("random commands have the replies of a real Redis", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(COMMAND, { minLength: 1, maxLength: 60 }), async (all) => {
      const run = `{${randomUUID()}}`;
      const memory = new MemoryRedis(() => Date.now() * 1_000);
      const sent = all.map((command) => command.map((word) => word.replace("{key}", run)));
      const pipeline = redis.pipeline();
      for (const [name = "", ...given] of sent) pipeline.callBuffer(name, ...given);
      const replies = (await pipeline.exec()) ?? [];
      await redis.del(...["a", "b", "c", "t"].map((key) => run + key));
      const [ours, theirs] = [
        sent.map((command) => comparable(command, inMemory(memory, command))),
        sent.map((command, i) => comparable(command, replies[i]?.[0] ?? replies[i]?.[1])),
      ];
      expect(ours).toEqual(theirs);
    }),
    { numRuns: 300 },
  );
});

it("messages reach the receivers of a channel, which are counted", () => {
  const memory = new MemoryRedis(() => 0);
  const heard: string[] = [];
  const receive = (channel: string, message: string): void => void heard.push(`${channel} ${message}`);
  memory.subscribe("news", receive);
  expect(memory.call(["PUBSUB", "NUMSUB", "news", "other"])).toEqual(["news", 1, "other", 0]);
  expect(memory.call(["PUBLISH", "news", "one"])).toBe(1);
  memory.unsubscribe("news", receive);
  expect(memory.call(["PUBLISH", "news", "two"])).toBe(0);
  expect(heard).toEqual(["news one"]);
});

it("a key is gone after the ms in which it ends, and the clock of a script stands still", () => {
  let micros = 5_000_000;
  const memory = new MemoryRedis(() => micros);
  memory.call(["SET", "a", "x", "PX", "10"]);
  micros += 10_999;
  expect(memory.call(["PTTL", "a"])).toBe(0);
  memory.atOnce(() => {
    micros += 1_000;
    expect(memory.call(["GET", "a"])).toBe("x");
  });
  expect(memory.call(["GET", "a"])).toBe(null);
});

it("XADD gives ids that grow, and MAXLEN holds", () => {
  let micros = 7_000_000;
  const memory = new MemoryRedis(() => micros);
  const add = (value: string): Reply => memory.call(["XADD", "s", "MAXLEN", "~", "3", "*", "v", value]);
  expect([add("a"), add("b")]).toEqual(["7000-0", "7000-1"]);
  micros = 6_000_000;
  expect(add("c")).toBe("7000-2");
  micros = 9_000_000;
  expect([add("d"), add("e")]).toEqual(["9000-0", "9000-1"]);
  const all = memory.call(["XRANGE", "s", "-", "+"]) as [string, string[]][];
  expect(all.map(([id, words]) => [id, words[1]])).toEqual([
    ["7000-2", "c"],
    ["9000-0", "d"],
    ["9000-1", "e"],
  ]);
  expect(memory.call(["XRANGE", "s", "(7000-2", "+", "COUNT", "1"])).toEqual([["9000-0", ["v", "d"]]]);
});

it.each([
  ["APPEND", "a", "b"],
  ["SET", "a", "b", "EX", "5"],
  ["ZADD", "a", "GT", "5", "b"],
  ["ZRANGE", "a", "0", "-1", "REV"],
  ["ZRANGE", "a", "-", "+", "BYLEX"],
  ["ZRANGE", "mixed", "[a", "[b", "BYLEX"],
  ["PEXPIRE", "a", "5", "NX"],
  ["PUBSUB", "CHANNELS"],
  ["SCAN", "0", "NOVALUES", "x"],
  ["XADD", "a", "NOMKSTREAM", "*", "f", "v"],
  ["XADD", "a", "1-*", "f", "v"],
])("%s %s %s %s, which the memory lacks, is an error of its user", (...command) => {
  const memory = new MemoryRedis(() => 0);
  memory.call(["ZADD", "mixed", "1", "a", "2", "b"]);
  expect(() => memory.call(command)).toThrow(/^the memory Redis has no/);
});
