import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import type { Leader } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { electionLua } from "../../src/redis/lua.generated.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// What observers see, and what they ask for it.

const own = new OwnServer();
const keysOf = (name: string) => new Keys("", false).ofElection(name);
const join = (client = {}) => own.parties.join({ url: own.url, client });

/** A client behind a proxy that notes its commands. */
async function behind(client = {}) {
  const proxy = await TcpProxy.start(own.server);
  onTestFinished(() => proxy.stop());
  const party = await own.parties.join({ url: proxy.url, client });
  proxy.record();
  const asked = () =>
    proxy.commands.filter(({ command }) => command.includes(electionLua.observe.sha)).length;
  const sent = (name: string) =>
    proxy.commands.filter(({ command: [first] }) => first?.toLowerCase() === name);
  return { ...party, proxy, asked, sent };
}

type Seen = AsyncIterableIterator<Leader | null, undefined>;

/** What it yields next. */
const next = async (seen: Seen): Promise<Leader | null> => {
  const { value, done } = await seen.next();
  if (done) throw new Error("the observation is over");
  return value;
};
const values = async (seen: Seen, count: number): Promise<(string | null)[]> => {
  const all: (string | null)[] = [];
  while (all.length < count) all.push((await next(seen))?.value ?? null);
  return all;
};

it("each leader, value and end reaches observers with one message, long before the next re-check", async () => {
  const [a, b] = [await join(), await join()];
  const observer = await behind();
  const name = freshName("election");
  const seen = observer.locks.election(name).observe();
  expect(await next(seen)).toBeNull();
  await until(() => observer.sent("subscribe").length > 0);
  const from = performance.now();
  const term = await a.locks.election(name).campaign({ value: "a" });
  expect(await next(seen)).toMatchObject({
    id: a.locks.id,
    label: null,
    pid: process.pid,
    value: "a",
    token: term.token,
  });
  await term.proclaim("a2");
  expect(await next(seen)).toMatchObject({
    id: a.locks.id,
    label: null,
    pid: process.pid,
    value: "a2",
    token: term.token,
  });
  const second = b.locks.election(name).campaign({ value: "b" });
  await until(() => own.admin.zcard(keysOf(name).queue));
  await term.resign();
  // Between both nobody has said that it leads; whether that is seen is a matter of time.
  let leader = await next(seen);
  leader ??= await next(seen);
  expect(leader).toMatchObject({ id: b.locks.id, value: "b" });
  await (await second).resign();
  expect(await next(seen)).toBeNull();
  expect(performance.now() - from).toBeLessThan(5_000);
  expect(await seen.return?.()).toEqual({ done: true, value: undefined });
});

it("an election is two commands, the end of a term too, and the terms of a client share one subscription that they do not wait for", async () => {
  const { locks, sent, proxy } = await behind();
  const names = Array.from({ length: 5 }, () => freshName("election"));
  const terms = await Promise.all(names.map((name) => locks.election(name).campaign()));
  await until(async () => (await own.admin.pubsub("CHANNELS", `*${locks.id}`)).length === 1);
  for (const term of terms) await term.resign();
  // To the election's news.
  const told = () =>
    sent("evalsha").filter(({ command }) => command.some((word) => word.startsWith("changed ")));
  await until(() => told().length === 5);
  const before = proxy.commands.length;
  const term = await locks.election(names[0] ?? "").campaign();
  expect(proxy.commands.length - before).toBe(2);
  await term.resign();
  await until(() => told().length === 6);
  expect(proxy.commands.length - before).toBe(4);
  expect(sent("subscribe")).toHaveLength(1);
});

it("all observers of a client share one subscription and one request, and the last one ends both", async () => {
  const { locks, asked, sent, redis } = await behind();
  const name = freshName("election");
  const all = Array.from({ length: 20 }, () => locks.election(name).observe());
  expect(await Promise.all(all.map(next))).toEqual(all.map(() => null));
  await until(async () => Number((await own.admin.pubsub("NUMSUB", keysOf(name).news))[1]) === 1);
  // The first question, and one more when messages are heard.
  await until(() => asked() === 2);
  expect(sent("subscribe")).toHaveLength(1);
  const pending = all.map((seen) => seen.next());
  for (const seen of all.slice(1)) await seen.return?.();
  expect(await Promise.all(pending.slice(1))).toEqual(
    all.slice(1).map(() => ({ done: true, value: undefined })),
  );
  expect(Number((await own.admin.pubsub("NUMSUB", keysOf(name).news))[1])).toBe(1);
  await all[0]?.return?.();
  await until(async () => Number((await own.admin.pubsub("NUMSUB", keysOf(name).news))[1]) === 0);
  expect(redis.status).toBe("ready");
});

it("break and the signal end an observation; a signal that has aborted prevents it", async () => {
  const { locks, sent } = await behind();
  const name = freshName("election");
  const listening = async (): Promise<number> =>
    Number((await own.admin.pubsub("NUMSUB", keysOf(name).news))[1]);
  for await (const leader of locks.election(name).observe()) {
    expect(leader).toBeNull();
    await until(async () => (await listening()) === 1);
    break;
  }
  await until(async () => (await listening()) === 0);
  const stop = new AbortController();
  const seen: unknown[] = [];
  for await (const leader of locks.election(name).observe({ signal: stop.signal })) {
    seen.push(leader);
    setImmediate(() => stop.abort());
  }
  expect(seen).toEqual([null]);
  await until(async () => (await listening()) === 0);
  const before = sent("evalsha").length;
  for await (const _ of locks.election(name).observe({ signal: stop.signal })) expect.unreachable();
  expect(sent("evalsha")).toHaveLength(before);
});

it("a slow consumer gets the newest state, and no state twice", async () => {
  const [a, b] = [await join(), await join()];
  const name = freshName("election");
  const term = await a.locks.election(name).campaign({ value: "0" });
  const [slow, quick] = [b.locks.election(name).observe(), b.locks.election(name).observe()];
  expect(await values(slow, 1)).toEqual(["0"]);
  for (let i = 1; i <= 30; i++) await term.proclaim(`${i}`);
  for (let value: string | undefined; value !== "30"; ) value = (await next(quick))?.value;
  expect(await values(slow, 1)).toEqual(["30"]);
  await term.proclaim("other");
  expect(await values(quick, 1)).toEqual(["other"]);
  await term.proclaim("30");
  expect(await values(quick, 1)).toEqual(["30"]);
  const pending = [slow.next(), slow.next()];
  await term.proclaim("31");
  expect(await pending[0]).toMatchObject({ value: { value: "31" } });
  await term.proclaim("32");
  expect(await pending[1]).toMatchObject({ value: { value: "32" } });
  await Promise.all([slow.return?.(), quick.return?.(), term.resign()]);
});

it("messages are only hints, and a flood of them causes one request at a time, with pauses", async () => {
  const a = await join();
  const { locks, asked } = await behind();
  const name = freshName("election");
  const term = await a.locks.election(name).campaign({ value: "true" });
  const seen = locks.election(name).observe();
  expect(await values(seen, 1)).toEqual(["true"]);
  await until(async () => Number((await own.admin.pubsub("NUMSUB", keysOf(name).news))[1]) === 1);
  await until(() => asked() === 2);
  const { news, lock } = keysOf(name);
  const from = performance.now();
  for (let i = 0; i < 200; i++)
    await own.admin.publish(news, i % 2 ? `changed ${lock}` : `leader ${2 ** 52} x evil:80`);
  await sleep(100);
  const spent = performance.now() - from;
  expect(asked() - 2).toBeLessThanOrEqual(Math.ceil(spent / 50) + 2);
  expect(asked()).toBeGreaterThan(2);
  await term.proclaim("still true");
  expect(await values(seen, 1)).toEqual(["still true"]);
  await term.resign();
  expect(await values(seen, 1)).toEqual([null]);
  await seen.return?.();
});
