import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LockClient } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { rememberLua as lua } from "../../src/redis/lua.generated.ts";
import { failure, record } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { sends } from "../support/matches.ts";
import { running } from "../support/result-runs.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A run whose Redis is away, full, or loses its keys. `near` is connected through a proxy, and its
// library sends no lost command again.

const stage = new Stage({
  near: { redis: { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 } },
});
const KEEP = { keep: 3_600_000 };
const LONG = 600_000;
const unavailable = { code: "LOCK_UNAVAILABLE" };
const never = (): never => expect.unreachable();
const takes = sends(lua.take, lua.firstTake);
const finishes = sends(lua.finish);

let near: LockClient;
let far: LockClient;
let name: string;
let keys: ReturnType<Keys["ofRemembered"]>;
beforeEach(async () => {
  near = stage.near.locks;
  far = stage.far.locks;
  name = stage.lock.name;
  keys = new Keys("", false).ofRemembered(name);
  await loadScripts(stage.far.redis, lua);
});
const isQueued = () => until(() => stage.far.redis.exists(keys.queue));

it.each(["dropCommand", "dropReply"] as const)(
  "Redis is away at the end of the body (%s): its call has its value, and the others when Redis is back",
  async (fault) => {
    const { proxy } = stage;
    const told = record(near);
    const first = near.remember(name, { ...KEEP, lease: LONG }, async () => {
      await isQueued();
      proxy.refuse(true);
      return 1;
    });
    await until(() => stage.far.redis.exists(keys.lock));
    const second = far.remember(name, KEEP, never);
    await proxy[fault](finishes);
    const made = await first;
    expect(made).toEqual({ value: 1, ran: true, token: expect.any(Number), at: 0 });
    expect(told.error).toMatchObject([{ ...unavailable, lockName: name }]);
    const { token } = made;
    const isStored = fault === "dropReply";
    expect(await far.remembered(name)).toEqual(
      isStored ? expect.objectContaining({ value: 1, token }) : null,
    );
    proxy.refuse(false);
    expect(await second).toMatchObject({ value: 1, ran: false, token });
    expect(await far.remember(name, KEEP, never)).toMatchObject({ value: 1, token });
  },
);

it("the reply to the end of a run is lost, and the command is sent again: the result is stored once", async () => {
  const { proxy } = stage;
  const { locks } = await stage.join({ url: proxy.url });
  const { error } = record(locks);
  const lost = proxy.dropReply(finishes);
  const call = locks.remember(name, KEEP, () => {
    proxy.refuse(true);
    return 1;
  });
  await lost;
  const stored = await far.remembered(name);
  proxy.refuse(false);
  const { token, at } = await call;
  for (const now of [stored, await far.remembered(name)]) expect(now).toMatchObject({ value: 1, token, at });
  expect(error).toEqual([]);
});

it.each(["dropCommand", "dropReply"] as const)(
  "Redis is away at the beginning (%s): the body does not run, and the next caller's does",
  async (fault) => {
    const lost = stage.proxy[fault](takes);
    const call = failure(near.remember(name, { ...KEEP, lease: LONG }, never));
    await lost;
    expect(await call).toMatchObject({ ...unavailable, lockName: name });
    expect(await far.remember(name, KEEP, () => 2)).toMatchObject({ value: 2, ran: true });
  },
);

describe("a full Redis", () => {
  afterEach(() => stage.far.redis.config("SET", "maxmemory", "0"));

  it("stores the result of a run that has begun, and refuses a new one with nothing done", async () => {
    const first = await running(far, name);
    const second = near.remember(name, KEEP, never);
    await isQueued();
    await stage.far.redis.config("SET", "maxmemory", "1");
    first.ran(1);
    expect(await first.ended).toMatchObject({ value: 1, ran: true });
    for (const call of [second, far.remember(name, KEEP, never)]) expect((await call).value).toBe(1);
    const other = freshName();
    expect(await failure(near.remember(other, KEEP, never))).toMatchObject({
      ...unavailable,
      cause: { message: expect.stringContaining("OOM") },
    });
    expect(await stage.far.redis.keys(`holdfast:remember:{${other}}*`)).toEqual([]);
  });
});

describe("the run's key is lost during the body", () => {
  const lose = { FLUSHALL: () => stage.far.redis.flushall(), DEL: () => stage.far.redis.del(keys.lock) };

  it.each(["FLUSHALL", "DEL"] as const)(
    "by %s, and another process runs: the first result counts until that of the newer run is there",
    async (how) => {
      const first = await running(near, name);
      await lose[how]();
      const next = await running(far, name);
      first.ran(1);
      // No answer had said so before its body ended.
      expect(await first.ended).toMatchObject({ value: 1, ran: true });
      expect(await near.remember(name, KEEP, never)).toMatchObject({ value: 1 });
      next.ran(2);
      expect(await next.ended).toMatchObject({ value: 2, ran: true });
      expect(await near.remember(name, KEEP, never)).toMatchObject({ value: 2 });
    },
  );

  it("and its next renewal notices that: the signal aborts, and the result of a body that ends nevertheless counts", async () => {
    const lost = { code: "LOCK_LOST", reason: "gone" };
    const call = near.remember(name, { ...KEEP, lease: 6_000 }, async ({ signal }) => {
      await lose.FLUSHALL();
      await until(() => signal.aborted);
      return 1;
    });
    expect(await failure(call)).toMatchObject(lost);
    expect(await far.remembered(name)).toMatchObject({ value: 1 });
  });
});

describe("close()", () => {
  it("at the end of its grace aborts the signal: the next waiter runs at once, and no late value is stored", async () => {
    let end = (_: number): void => {};
    let signal: AbortSignal | undefined;
    const body = (run: { signal: AbortSignal }) => {
      ({ signal } = run);
      return new Promise((ended) => {
        end = ended;
      });
    };
    const first = failure(near.remember(name, { ...KEEP, lease: LONG }, body));
    await until(() => signal);
    const next = running(far, name, { lease: LONG });
    await isQueued();
    await near.close({ grace: 0 });
    expect(signal?.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    const { ran, ended } = await next;
    end(1);
    expect(await first).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    expect(await far.remembered(name)).toBeNull();
    ran(2);
    expect(await ended).toMatchObject({ value: 2, ran: true });
  });

  it("within its grace the run ends as usual, and waiting callers are refused", async () => {
    const first = await running(near, name);
    const waiting = failure(near.remember(name, KEEP, never));
    const closed = near.close();
    expect(await waiting).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await failure(near.remember(name, KEEP, never))).toMatchObject({ code: "CLIENT_CLOSED" });
    first.ran(1);
    await closed;
    expect(await first.ended).toMatchObject({ value: 1, ran: true, at: expect.any(Number) });
    expect(await far.remember(name, KEEP, never)).toMatchObject({ value: 1 });
  });

  it("ends the tries to store a result that no answer has confirmed", async () => {
    const { proxy } = stage;
    near.on("error", () => {});
    const lost = proxy.dropCommand(finishes);
    const { value } = await near.remember(name, { ...KEEP, lease: LONG }, () => {
      proxy.refuse(true);
      return 1;
    });
    await lost;
    expect(value).toBe(1);
    // Its library has given up the try that came at once.
    await stage.near.redis.ping().catch(() => {});
    await near.close({ grace: 0 });
    proxy.refuse(false);
    await until(() => stage.near.redis.ping().catch(() => null));
    expect(await far.remembered(name)).toBeNull();
  });
});
