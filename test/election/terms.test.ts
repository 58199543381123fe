import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import type { LockClient, LockEvent } from "../../src/index.ts";
import { createQuorumClient, type QuorumClient } from "../../src/quorum/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { decodeMessage } from "../../src/redis/messages.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// Candidates and leaders on one server.

const own = new OwnServer();
const join = (client = {}) => own.parties.join({ url: own.url, client });
const keysOf = (name: string) => new Keys("", false).ofElection(name);

it("one candidate leads at a time, in the order of arrival, and everyone sees the leader", async () => {
  const [a, b, c] = [await join(), await join({ label: "b é" }), await join()];
  const name = freshName("election");
  const term = await a.locks.election(name, { label: "east/1" }).campaign({ value: "10.0.0.7:80 é" });
  expect(await c.locks.election(name).leader()).toEqual({
    id: a.locks.id,
    host: expect.any(String),
    pid: process.pid,
    since: Math.floor(term.token / 1_000),
    label: "east/1",
    value: "10.0.0.7:80 é",
    token: term.token,
  });
  const second = b.locks.election(name).campaign({ value: "b" });
  await until(() => own.admin.zcard(keysOf(name).queue));
  const third = a.locks.election(name).campaign({ value: "again" });
  await until(async () => (await own.admin.zcard(keysOf(name).queue)) === 2);
  await term.proclaim("10.0.0.7:81"); // also of a hold with a label
  expect((await c.locks.election(name).leader())?.value).toBe("10.0.0.7:81");
  expect([term.held, term.lost, term.value, term.signal.aborted]).toEqual([true, null, "10.0.0.7:81", false]);
  await term.resign();
  expect([term.held, term.lost, term.signal.aborted]).toEqual([false, null, false]);
  await term.resign();
  const next = await second;
  expect(next.token).toBeGreaterThan(term.token);
  expect(await a.locks.election(name).leader()).toMatchObject({
    id: b.locks.id,
    label: "b é",
    value: "b",
    token: next.token,
  });
  await next[Symbol.asyncDispose]();
  await (await third).resign();
  expect(await a.locks.election(name).leader()).toBeNull();
  expect(await own.admin.exists(keysOf(name).lock, keysOf(name).queue)).toBe(0);
});

it("a client with linger caches no election, and a lock of the same name is separate", async () => {
  const { locks } = await join({ linger: 1_000 });
  const name = freshName("election");
  await using lease = await locks.lock(name).lock();
  for (let i = 0; i < 3; i++) {
    await (await locks.election(name).campaign()).resign();
    expect(await own.admin.exists(keysOf(name).lock)).toBe(0);
  }
  expect([lease.held, locks.stats().kept]).toEqual([true, 0]);
  const events: unknown[] = [];
  for (const event of ["acquire", "release", "giveup"] as const)
    locks.on(event, (told: LockEvent) => events.push([event, told.kind, told.name]));
  const term = await locks.election(name).campaign();
  await expect(locks.election(name).campaign({ wait: 0 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  await term.resign();
  const told = (event: string): unknown[] => [event, "election", name];
  expect(events).toEqual([told("acquire"), told("giveup"), told("release")]);
});

it("bad arguments are refused before anything is sent", async () => {
  const { locks } = await join();
  const name = freshName("election");
  const election = locks.election(name);
  expect(() => locks.election("")).toThrow(RangeError);
  expect(() => locks.election(name, { lease: 99 })).toThrow(/Cannot create an election: lease must be/);
  const bad = [{ value: "x".repeat(4_097) }, { value: "é".repeat(2_049) }, { value: "\ud800" }, { wait: -1 }];
  for (const options of bad) expect(await failure(election.campaign(options))).toBeInstanceOf(RangeError);
  for (const options of [{ value: 7 }, { lease: 1 }, null])
    expect(await failure(election.campaign(options as never))).toBeInstanceOf(TypeError);
  expect(await failure(election.runAsLeader(7 as never))).toBeInstanceOf(TypeError);
  expect(() => election.observe({ value: "" } as never)).toThrow(TypeError);
  expect(await own.admin.exists(keysOf(name).lock)).toBe(0);
  const term = await election.campaign({ value: "é".repeat(2_048) });
  for (const value of ["x".repeat(4_097), undefined])
    expect(String(await failure(term.proclaim(value as never)))).toMatch(
      /value must be a well-formed string/,
    );
  expect((await election.leader())?.value).toBe("é".repeat(2_048));
  await term.resign();
});

it("a client of several masters explains why it has no elections", () => {
  const masters = [1, 2, 3].map(() => new Redis({ lazyConnect: true }));
  const locks = createQuorumClient(masters) as QuorumClient & Pick<LockClient, "election">;
  expect(() => locks.election("x")).toThrow(/^Cannot create an election: .*each could name another leader/);
  for (const master of masters) master.disconnect();
});

it("observers see exactly what was proclaimed, byte by byte, and only during the term", async () => {
  const { locks } = await join();
  const election = locks.election(freshName("election"));
  const term = await election.campaign();
  expect((await election.leader())?.value).toBe("");
  for (const value of ["a\0b c\r\n", "", " {x} 1 0000 ", "☃".repeat(1_365)]) {
    await term.proclaim(value);
    expect((await election.leader())?.value).toBe(value);
    expect(term.value).toBe(value);
  }
  await Promise.all(["one", "two", "three"].map((value) => term.proclaim(value)));
  expect((await election.leader())?.value).toBe("three");
  await term.resign();
  expect(await failure(term.proclaim("late"))).toMatchObject({ code: "LOCK_RELEASED" });
  expect(() => term.assertHeld()).toThrow(/was resigned, so this term is over: campaign again\.$/);
});

it("a lost term reports it: by its signal, by `lost`, and by its methods", async () => {
  const { locks } = await join();
  const name = freshName("election");
  const term = await locks.election(name, { lease: 3_000 }).campaign();
  await own.admin.del(keysOf(name).lock);
  await until(() => term.signal.aborted);
  expect(term.signal.reason).toBe(term.lost);
  expect(term.lost).toMatchObject({ code: "LOCK_LOST", reason: "gone", lockName: name });
  expect(() => term.assertHeld()).toThrow(term.lost ?? "");
  await expect(term.proclaim("x")).rejects.toBe(term.lost);
  await term.resign(); // its loss was thrown before
});

/** Does a client hear its messages? */
const listens = async ({ id }: LockClient): Promise<boolean> =>
  ((await own.admin.pubsub("CHANNELS", `*${id}`)) as string[]).length === 1;

it("forceResign ends the term that was shown, and no later one", async () => {
  const [{ locks }, { locks: others }] = [await join(), await join()];
  const name = freshName("election");
  const waits = () => until(async () => (await own.admin.zcard(keysOf(name).queue)) === 1);
  // It has not waited, and listens all the same; also when its connections have come back.
  const term = await locks.election(name).campaign();
  await until(() => listens(locks));
  for (const type of ["pubsub", "normal"]) await own.admin.call("CLIENT", "KILL", "TYPE", type);
  await until(() => listens(locks));
  const next = others.election(name).campaign();
  await waits();
  const by = others.election(name);
  expect(await by.forceResign({ token: term.token - 1 })).toBe(false);
  expect(term.held).toBe(true);
  expect(await by.forceResign({ token: term.token, label: "alice" })).toBe(true);
  await until(() => term.signal.aborted);
  expect(term.lost).toMatchObject({
    reason: "revoked",
    by: "alice",
    message: expect.stringContaining("forceResign() ended it, called by 'alice';"),
  });
  const second = await next;
  expect(await by.forceResign({ token: term.token })).toBe(false);
  expect((await by.leader())?.token).toBe(second.token);
  await second.resign();
  expect(await by.forceResign()).toBe(false);
  const third = await locks.election(name).campaign();
  // A leader is shown by its client, and in lists by its hold.
  const [shown, listed] = [await by.leader(), (await others.list({ kind: "election" }).next()).value];
  expect(await by.forceResign({ holder: `${locks.id}x` })).toBe(false);
  expect(await by.forceResign({ holder: shown?.id })).toBe(true);
  expect(await by.forceResign({ holder: listed?.holder?.id })).toBe(false);
  await until(() => third.signal.aborted);
  const fourth = await locks.election(name).campaign();
  const [seen] = (await others.list({ kind: "election" }).next()).value?.holders ?? [];
  expect(await by.forceResign({ holder: seen?.id })).toBe(true);
  await until(() => fourth.signal.aborted);
});

it("a proclamation finds that the term is lost", async () => {
  const { locks } = await join();
  const name = freshName("election");
  const term = await locks.election(name).campaign();
  await own.admin.del(keysOf(name).lock);
  expect(await failure(term.proclaim("x"))).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
  expect([term.held, term.signal.aborted, term.lost?.reason]).toEqual([false, true, "gone"]);
});

it("an aborted candidate leaves nothing behind: while it waits, and while it proclaims itself", async () => {
  const [a, b] = [await join(), await join()];
  const name = freshName("election");
  const election = b.locks.election(name);
  const term = await a.locks.election(name).campaign();
  const stop = new AbortController();
  const waiting = election.campaign({ signal: stop.signal });
  await until(() => own.admin.zcard(keysOf(name).queue));
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await until(async () => (await own.admin.zcard(keysOf(name).queue)) === 0);
  await expect(election.campaign({ wait: 50 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT", wait: 50 });
  await expect(election.campaign({ signal: stop.signal })).rejects.toThrow("enough");

  const late = new AbortController();
  b.locks.once("acquire", () => late.abort(new Error("too late")));
  const candidate = election.campaign({ signal: late.signal });
  await until(() => own.admin.zcard(keysOf(name).queue));
  await term.resign();
  await expect(candidate).rejects.toThrow("too late");
  await until(async () => (await own.admin.exists(keysOf(name).lock)) === 0);
  expect(await election.leader()).toBeNull();
});

it("a client gives back a grant of an election for which no caller is waiting", async () => {
  const { locks, redis } = await join();
  const name = freshName("election");
  const stop = new AbortController();
  const term = await locks.election(name).campaign();
  const waiting = locks.election(name).campaign({ signal: stop.signal });
  await until(() => own.admin.zcard(keysOf(name).queue));
  const [entry = ""] = await own.admin.zrange(keysOf(name).queue, "0", "0");
  const hold = entry.split(" ")[3] ?? "";
  stop.abort();
  await waiting.catch(() => {});
  await term.resign();
  // As a late copy of its command would have it.
  const token = `${term.token + 1}`;
  await own.admin.set(keysOf(name).lock, `10 ${token} ${token} ${hold}`, "PX", 60_000);
  const grant = `grant ${token} ${term.token} 60000 0 ${hold} ${keysOf(name).lock}`;
  expect(decodeMessage(grant)).not.toBeNull();
  await redis.publish(hold.slice(0, -22), grant);
  await until(async () => (await own.admin.exists(keysOf(name).lock)) === 0);
});

it("close() ends terms, candidates and observers", async () => {
  const [a, b] = [await join(), await join()];
  const name = freshName("election");
  const term = await a.locks.election(name).campaign();
  const waiting = b.locks.election(name).campaign();
  const seen = b.locks.election(name).observe();
  expect((await seen.next()).value).toMatchObject({ token: term.token });
  const next = seen.next();
  await until(() => own.admin.zcard(keysOf(name).queue));
  await Promise.all([failure(waiting), b.locks.close()]).then(([error]) =>
    expect(error).toMatchObject({ code: "CLIENT_CLOSED" }),
  );
  expect(await next).toEqual({ done: true, value: undefined });
  expect(await failure(b.locks.election(name).leader())).toMatchObject({ code: "CLIENT_CLOSED" });
  expect(await failure(b.locks.election(name).observe().next())).toMatchObject({ code: "CLIENT_CLOSED" });
  await a.locks.close({ grace: 0 });
  expect(term.lost).toMatchObject({ reason: "closed" });
  expect(await own.admin.exists(keysOf(name).lock)).toBe(0);
});

it("a Redis that does not answer makes campaign() fail as it makes lock() fail", async () => {
  const { locks, redis } = await join({ replyTimeout: 200 });
  redis.disconnect();
  await until(() => redis.status === "end");
  const election = locks.election(freshName("election"));
  expect(await failure(election.campaign())).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(await failure(election.leader())).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(await failure(election.runAsLeader(() => sleep(1)))).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(await failure(election.observe().next())).toMatchObject({ code: "LOCK_UNAVAILABLE" });
});
