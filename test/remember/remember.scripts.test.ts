import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { Keys } from "../../src/redis/keys.ts";
import { rememberLua } from "../../src/redis/lua.generated.ts";
import { needs, openScriptServer, type ScriptServer } from "../support/script-server.ts";

// The scripts of results that callers share, by themselves: which result counts, and for which callers.

const { KEPT, OWNER, MINE, HELD, STALE, GONE, RELEASED, TAKEN, RESULT_TTL, READY_MOST } = codes;
const { lock, queue, clients, clock, result, last } = new Keys("", false).ofRemembered("x");
const NEVER = String(Number.MAX_SAFE_INTEGER);
const LEASE = 5_000;

let server: ScriptServer;
beforeAll(async () => {
  server = await openScriptServer();
});
beforeEach(() => server.redis.flushall());
afterAll(() => server.stop());

type Answer = readonly (string | number)[];
const CHANNEL = "host:1:0123456789abcdef";
const hold = (number: number): string => `${CHANNEL}:${`${number}`.padStart(8, "0")}abcdefghijklm`;
const entryOf = (number: number): string => `0 3000 0 ${hold(number)}`;

const micros = async (): Promise<number> => {
  const [seconds = 0, rest = 0] = await server.redis.time();
  return Number(seconds) * 1_000_000 + Number(rest);
};

interface Take {
  /** Does it queue? */
  readonly queues?: boolean;
  readonly seen?: string | number;
  readonly notAfter?: string;
}
async function take(
  number: number,
  { queues = false, seen = "", notAfter = NEVER }: Take = {},
): Promise<Answer> {
  const entry = queues ? "0 3000 0 " : "";
  const args = [hold(number), LEASE, notAfter, entry, String(seen)];
  return (await server.redis.eval(
    rememberLua.take.lua,
    5,
    lock,
    queue,
    clients,
    clock,
    result,
    ...args,
  )) as Answer;
}

interface Finish {
  readonly keep?: number;
  readonly state?: string;
  readonly fingerprint?: string;
  readonly json?: string;
  /** µs from now. */
  readonly late?: number;
}
async function finish(number: number, token: unknown, given: Finish = {}): Promise<Answer | number> {
  const { keep = 60_000, state = "v", fingerprint = "-", json = `"of ${number}"`, late } = given;
  const until = late === undefined ? "" : String((await micros()) + late);
  const args = [hold(number), String(token), keep, state, fingerprint, json, until];
  const keys = [lock, queue, clients, clock, result, last];
  return (await server.redis.eval(rememberLua.finish.lua, 6, ...keys, ...args)) as Answer | number;
}
const show = async (): Promise<Answer | number> =>
  (await server.redis.eval(rememberLua.show.lua, 1, result)) as Answer | number;
const forget = async (): Promise<Answer | number> =>
  (await server.redis.eval(rememberLua.forget.lua, 1, result)) as Answer | number;

const codeOf = (answer: Answer | number): unknown => (typeof answer === "number" ? answer : answer[0]);

/** A run that has begun: its token. */
async function begun(number: number, given?: Take): Promise<string> {
  const [code, , token] = await take(number, given);
  expect(code).toBe(OWNER);
  return String(token);
}
/** Which run's value new callers get; null: none. */
async function valueFor(seen: string | number = ""): Promise<string | null> {
  const [code, , , , text] = await take(99, { seen });
  if (code === KEPT) return String(text).split(" ").at(-1) ?? "";
  if (code === OWNER) await server.redis.del(lock);
  return null;
}
/** The run's hold is over: its time, or any other reason. */
const ends = (): Promise<unknown> => server.redis.del(lock);

it("one runs, the others wait for it, and all that come within its time get what it has stored", async () => {
  const token = await begun(1);
  expect(await take(2)).toEqual([HELD, expect.anything(), expect.anything(), -1, 0, token]);
  expect(await take(2, { queues: true })).toEqual([HELD, expect.anything(), expect.anything(), 0, 0, token]);
  const [code, at] = (await finish(1, token)) as Answer;
  expect(code).toBe(RELEASED);
  const text = `1v ${token} ${at} 0000000000000000 60000 - "of 1"`;
  expect(await take(3)).toEqual([KEPT, expect.anything(), token, expect.anything(), text]);
  expect(await show()).toEqual([KEPT, expect.anything(), token, expect.anything(), text]);
  expect(await server.redis.exists(lock, queue)).toBe(0);
});

it("a run that is over goes to the first waiter before it goes to the caller", async () => {
  await begun(1);
  await take(2, { queues: true });
  await ends();
  expect(codeOf(await take(3))).toBe(HELD);
  expect(codeOf(await take(2))).toBe(MINE);
});

it("a command that comes too late does nothing", async () => {
  expect(await take(1, { notAfter: String((await micros()) - 1) })).toEqual([STALE, expect.anything()]);
  expect(await server.redis.keys("*")).toEqual([]);
});

describe("keep", () => {
  it("is over: only those that have waited for that run, or an earlier one, get its result", async () => {
    const earlier = await begun(1);
    await ends();
    const token = await begun(2);
    await finish(2, token, { keep: 0 });
    expect(await show()).toBe(GONE);
    expect(await valueFor()).toBeNull();
    expect(await valueFor(token)).toBe('2"');
    expect(await valueFor(earlier)).toBe('2"');
    expect(await valueFor(Number(token) + 1)).toBeNull();
  });

  it("is shorter than what those need that have waited: the key stays longer", async () => {
    await finish(1, await begun(1), { keep: 10 });
    expect(await server.redis.pttl(result)).toBeGreaterThan(RESULT_TTL - 5_000);
  });

  it("is longer: the key ends with it", async () => {
    await finish(1, await begun(1), { keep: 60_000 });
    const left = await server.redis.pttl(result);
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  it("does not grow when the server's clock is set back, which makes a key last longer", async () => {
    await finish(1, await begun(1), { keep: 60_000 });
    await server.redis.pexpire(result, 3_600_000);
    expect(await valueFor()).toBe('1"');
    expect(await server.redis.pttl(result)).toBeLessThanOrEqual(60_000);
  });
});

describe("a result replaces", () => {
  it("an older one, and never a newer one", async () => {
    const old = await begun(1);
    await ends();
    const next = await begun(2);
    await finish(2, next);
    expect(await finish(1, old, { late: 1_000_000 })).toBe(TAKEN);
    expect(await valueFor()).toBe('2"');
    await forget();
    expect(await finish(1, old, { late: 1_000_000 })).toBe(TAKEN);
    expect(await valueFor()).toBeNull();
  });

  it("nothing after its time for being late, and never if it may not be late", async () => {
    const token = await begun(1);
    await ends();
    expect(await finish(1, token)).toBe(GONE);
    expect(await finish(1, token, { late: -1 })).toBe(GONE);
    await begun(2);
    expect(await finish(1, token, { late: -1 })).toBe(TAKEN);
    expect(await show()).toBe(GONE);
  });

  it("what is there while the next one runs, and that one's replaces it", async () => {
    const old = await begun(1);
    await ends();
    const next = await begun(2);
    await take(3, { queues: true });
    expect(await finish(1, old, { late: 1_000_000 })).toMatchObject([RELEASED, expect.anything()]);
    expect(await valueFor()).toBe('1"');
    // It tells no waiter, and ends no hold: that of the next run goes on.
    expect(await server.redis.zrange(queue, "0", "-1")).toEqual([entryOf(3)]);
    expect((await take(2)).slice(0, 3)).toEqual([MINE, expect.anything(), next]);
    // A copy of the command that has queued a caller: that one has the result, and waits no more.
    expect(codeOf(await take(3, { queues: true }))).toBe(KEPT);
    expect(await server.redis.exists(queue)).toBe(0);
    expect(await finish(2, next)).toMatchObject([RELEASED, expect.anything()]);
    expect(await valueFor()).toBe('2"');
  });
});

it.each(["hello", "hello, this text is longer than a token"])(
  "a late result is readable although another program has written '%s' to the lock's key",
  async (text) => {
    const token = await begun(1);
    await server.redis.set(lock, text);
    expect(await finish(1, token, { late: 1_000_000 })).toMatchObject([RELEASED, expect.anything()]);
    expect(await valueFor()).toBe('1"');
    expect(await server.redis.get(lock)).toBe(text);
  },
);

describe("a copy", () => {
  it("of the command that stores it says so, and changes nothing", async () => {
    const token = await begun(1);
    const [, at] = (await finish(1, token)) as Answer;
    await server.redis.pexpire(result, 30_000);
    expect(await finish(1, token, { json: '"other"', late: 1_000_000 })).toEqual([RELEASED, at]);
    expect(await server.redis.pttl(result)).toBeLessThanOrEqual(30_000);
    expect(await valueFor()).toBe('1"');
    await forget();
    expect(await finish(1, token, { late: 1_000_000 })).toEqual([RELEASED, at]);
    expect(await show()).toBe(GONE);
  });

  // Its hold was over, and a late copy of its first command has taken the lock once more.
  it("of a run's first command owns the lock again: its older token stores nothing over a newer one", async () => {
    const old = await begun(1);
    await ends();
    await finish(2, await begun(2), { keep: 0 });
    expect(Number(await begun(1))).toBeGreaterThan(Number(old));
    expect(await finish(1, old, { late: 1_000_000 })).toBe(TAKEN);
    expect(await server.redis.exists(lock)).toBe(1);
  });

  it("of a queueing command queues nothing once there is a result", async () => {
    const token = await begun(1);
    await take(2, { queues: true });
    await finish(1, token);
    expect(codeOf(await take(2, { queues: true }))).toBe(KEPT);
    expect(await server.redis.exists(lock, queue)).toBe(0);
  });
});

it("a hold that was granted after a result ends, and the next waiters are told", async () => {
  const told: string[] = [];
  await server.listen([CHANNEL], (message) => told.push(message));
  const token = await begun(1);
  for (let n = 2; n < READY_MOST + 6; n++) await take(n, { queues: true });
  await finish(1, token);
  await server.received();
  expect(told.filter((message) => message.startsWith("ready "))).toHaveLength(READY_MOST);
  const granted = READY_MOST + 2;
  expect(told.at(0)).toBe(`grant ${told.at(0)?.split(" ").slice(1, 5).join(" ")} ${hold(granted)} ${lock}`);
  told.length = 0;
  expect(codeOf(await take(granted, { seen: token }))).toBe(KEPT);
  await server.received();
  expect(told).toHaveLength(3);
  expect(await server.redis.exists(lock, queue)).toBe(0);
});

it("a value may have any bytes", async () => {
  const json = JSON.stringify("\u0000 ü 👋 %s %d \\0");
  await finish(1, await begun(1), { json: `${json}\u0000` });
  expect(String((await take(2))[4]).endsWith(`- ${json}\u0000`)).toBe(true);
});

needs("maxmemory")("a full Redis takes the result of a run that has its hold", async () => {
  const token = await begun(1);
  await take(2, { queues: true });
  await server.redis.config("SET", "maxmemory", "1");
  try {
    expect(codeOf(await take(3))).toBe(HELD);
    expect(await finish(1, token)).toMatchObject([RELEASED, expect.anything()]);
    expect(codeOf(await take(3))).toBe(KEPT);
  } finally {
    await server.redis.config("SET", "maxmemory", "0");
  }
});

it.each([
  ["2v 1700000000000000 x", "WRONGTYPE"],
  ["hello", "WRONGTYPE"],
  ["1v 17 18 19 20 - 1", "WRONGTYPE"],
  [null, "WRONGTYPE"],
])("a key that holds '%s' (null: a list) is left alone, and a run goes on", async (text, error) => {
  const token = await begun(9);
  await (text === null ? server.redis.rpush(result, "") : server.redis.set(result, text));
  const held = async () => [await server.redis.get(lock), (await server.redis.keys("*")).sort()];
  const before = await held();
  for (const call of [() => take(1), () => take(1, { queues: true }), show, forget, () => finish(9, token)])
    await expect(call()).rejects.toThrow(error);
  expect(await held()).toEqual(before);
  expect(await (text === null ? server.redis.lrange(result, 0, "-1") : server.redis.get(result))).toEqual(
    text ?? [""],
  );
});
