// On a real Redis; in virtual time: test/world/directed/run-once.test.ts.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Keys } from "../../src/redis/keys.ts";
import { onceLua } from "../../src/redis/lua.generated.ts";
import { failure } from "../contract/observe.ts";
import { Actor } from "../support/actor.ts";
import { onNodeRedis } from "../support/carrier.ts";
import { freshName } from "../support/fixture.ts";
import { sends } from "../support/matches.ts";
import { OwnServer } from "../support/own-server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// `locks.once` when something goes wrong: processes that die or stand still, and answers that are lost.

const own = new OwnServer();
let proxy: TcpProxy;
const actors: Actor[] = [];
beforeAll(async () => {
  proxy = await TcpProxy.start(own.server);
});
afterEach(() => Promise.all(actors.splice(0).map((actor) => actor.end())));
afterAll(() => proxy.stop());

const HOUR = 3_600_000;
const keyOf = (name: string): string => new Keys("", false).ofOnce(name);
async function start(): Promise<Actor> {
  const actor = await Actor.start({ url: own.url });
  actors.push(actor);
  return actor;
}

describe("a process that is killed in the body", () => {
  it("frees the turn when its lease is over", async () => {
    const [victim, heir] = await Promise.all([start(), start()]);
    const name = freshName();
    const options = { every: HOUR, lease: 300 };
    const calm = { ...options, lease: 10_000 };
    expect(await victim.call("startRun", name, options)).toBe(0);
    victim.kill();
    expect(await heir.call("startRun", name, options)).toMatchObject({ ran: false, running: true });
    await until(async () => typeof (await heir.call("startRun", name, calm)) === "number");
    expect(await heir.call("endRun", 0)).toMatchObject({ outcome: { ran: true, value: "done" } });
  });

  it("keeps it to the end of the interval if asked to", async () => {
    const victim = await start();
    const name = freshName();
    await victim.call("startRun", name, { every: HOUR, lease: 300, onCrash: "keep" });
    victim.kill();
    await victim.exit;
    expect(await own.admin.pttl(keyOf(name))).toBeGreaterThan(HOUR - 60_000);
  });
});

it("a process that was suspended notices that its turn was taken over", async () => {
  const [sleeper, heir] = await Promise.all([start(), start()]);
  const name = freshName();
  const options = { every: HOUR, lease: 300 };
  const calm = { ...options, lease: 10_000 };
  await sleeper.call("startRun", name, options);
  sleeper.kill("SIGSTOP");
  await until(async () => typeof (await heir.call("startRun", name, calm)) === "number");
  sleeper.kill("SIGCONT");
  const { held, aborted, outcome } = await sleeper.call("endRun", 0);
  expect([held, aborted]).toEqual([false, true]);
  expect(outcome).toMatchObject({ code: "LOCK_LOST" });
  expect(await heir.call("endRun", 0)).toMatchObject({ held: true, outcome: { ran: true } });
  expect(await own.admin.get(keyOf(name))).toMatch(/^1d /);
});

describe("a lost answer", () => {
  it("to begin: the body runs, and runs once", async () => {
    const { locks } = await own.parties.join({ url: proxy.url });
    await locks.runOnce(freshName(), { every: HOUR }, () => {}); // the server knows the scripts
    const name = freshName();
    let runs = 0;
    const lost = proxy.dropReply(sends(onceLua.begin));
    expect(await locks.runOnce(name, { every: HOUR }, () => ++runs)).toEqual({ ran: true, value: 1 });
    await lost;
    expect(await locks.runOnce(name, { every: HOUR }, () => ++runs)).toMatchObject({
      ran: false,
      running: false,
    });
  });

  it("to begin, on a connection that does not resend: the call asks again", async () => {
    const redis = { autoResendUnfulfilledCommands: false };
    const { locks } = await own.parties.join({ url: proxy.url, redis });
    const name = freshName();
    const lost = proxy.dropReply(sends(onceLua.begin));
    expect(await locks.runOnce(name, { every: HOUR }, ({ held }) => held)).toEqual({
      ran: true,
      value: true,
    });
    await lost;
  });

  it("to the end: it is sent again, and is no loss", async () => {
    const { locks } = await own.parties.join({ url: proxy.url });
    for (const every of [HOUR, 20]) {
      const name = freshName();
      const lost = proxy.dropReply(sends(onceLua.end));
      const body = ({ begin }: { begin: number }) => until(() => Date.now() > begin + 20);
      expect(await locks.runOnce(name, { every }, body)).toMatchObject({ ran: true });
      await lost;
    }
  });

  it("to the end, on a connection that does not resend: the caller has its result, and the turn is over", async () => {
    const redis = { autoResendUnfulfilledCommands: false };
    const { locks } = await own.parties.join({ url: proxy.url, redis });
    const errors: Error[] = [];
    locks.on("error", (error) => errors.push(error));
    const name = freshName();
    const lost = proxy.dropCommand(sends(onceLua.end));
    expect(await locks.runOnce(name, { every: HOUR }, () => "sent")).toEqual({ ran: true, value: "sent" });
    await lost;
    expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE", lockName: name }]);
    await until(async () => (await own.admin.get(keyOf(name)))?.startsWith("1d "));
  });
});

it("a late beginning is taken back once its caller has gone", async () => {
  const { locks } = await own.parties.join({ url: proxy.url });
  await locks.runOnce(freshName(), { every: HOUR }, () => {});
  const name = freshName();
  const held = proxy.holdCommand(sends(onceLua.begin));
  const controller = new AbortController();
  const call = failure(
    locks.runOnce(name, { every: HOUR, signal: controller.signal }, () => expect.unreachable()),
  );
  const late = await held;
  controller.abort(new Error("gone"));
  await call;
  await late.deliver();
  await until(async () => (await own.admin.exists(keyOf(name))) === 0);
});

// node-redis tries to reconnect at once, without the pause that this test uses.
it.skipIf(onNodeRedis)("a client closed between two tries of a beginning has taken it back", async () => {
  const options = { autoResendUnfulfilledCommands: false, retryStrategy: () => 300 };
  const { locks, redis } = await own.parties.join({ url: proxy.url, redis: options });
  await locks.runOnce(freshName(), { every: HOUR }, () => {});
  const name = freshName();
  const lost = proxy.dropReply(sends(onceLua.begin));
  const call = failure(locks.runOnce(name, { every: HOUR }, () => expect.unreachable()));
  await lost;
  await until(() => redis.status === "reconnecting");
  expect(await own.admin.exists(keyOf(name))).toBe(1);
  await locks.close();
  expect(await call).toMatchObject({ code: "CLIENT_CLOSED" });
  expect(await own.admin.exists(keyOf(name))).toBe(0);
});

it("a copy of begin after a finished run begins nothing", async () => {
  const { locks } = await own.parties.join({ url: proxy.url });
  await locks.runOnce(freshName(), { every: HOUR }, () => {});
  const name = freshName();
  const every = 50;
  const held = proxy.holdCommand(sends(onceLua.begin));
  const call = locks.runOnce(name, { every }, ({ begin }) => until(() => Date.now() > begin + every));
  const late = await held;
  expect(await call).toMatchObject({ ran: true });
  expect(await own.admin.exists(keyOf(name))).toBe(0);
  await late.deliver();
  expect(await own.admin.exists(keyOf(name))).toBe(0);
});

it("a Redis that does not answer makes the call reject, and the body does not run", async () => {
  const { locks, redis } = await own.parties.join({ url: proxy.url, client: { replyTimeout: 300 } });
  await redis.ping();
  proxy.freeze("all");
  try {
    const call = locks.runOnce(freshName(), { every: HOUR }, () => expect.unreachable());
    expect(await failure(call)).toMatchObject({ code: "LOCK_UNAVAILABLE", name: "LockUnavailableError" });
  } finally {
    proxy.thaw();
  }
});

it("a turn of another format, or another value, is refused at once", async () => {
  const { locks } = await own.parties.join({ url: own.url });
  const name = freshName();
  await own.admin.set(keyOf(name), "2r what that version likes");
  const before = performance.now();
  expect(await failure(locks.runOnce(name, { every: HOUR }, () => {}))).toMatchObject({
    code: "LOCK_FORMAT",
    found: 2,
  });
  await own.admin.set(keyOf(name), "hello");
  expect(await failure(locks.runOnce(name, { every: HOUR }, () => {}))).toMatchObject({
    code: "LOCK_UNAVAILABLE",
  });
  expect(performance.now() - before).toBeLessThan(3_000);
});
