// On a real Redis; in virtual time: test/world/directed/late-copies.test.ts.

import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { countedLua } from "../../src/redis/lua.generated.ts";
import { listenersOf } from "../support/listeners.ts";
import { runs, Stage, timedAwake } from "../support/stage.ts";
import type { Match } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// The network delivers a copy of an acquire after its hold has ended, within `replyTimeout`: the
// copy owns the lock for no caller. A waiter's recall tells the client, which gives the lock back.

/** In ms of time awake. A re-check comes after 1.1 s, the end of the lease after 30 s. */
const AT_ONCE = 900;

const stage = new Stage();
const { acquire, firstAcquire } = countedLua;

/** An acquire of readers whose hold may be cached: its client is notified of waiting writers. */
const takesReads: Match = ([command, sha, , , , , , , , ...args]) =>
  command === "evalsha" && [acquire.sha, firstAcquire.sha].includes(`${sha}`) && args.includes("+");

it.each([
  ["a lock", {}, {}],
  ["a lock with a label", {}, { label: "night run" }],
  ["a lock that may be cached", { linger: 1_000 }, {}],
])("%s: the waiter in another client has it at once", async (_, options, call) => {
  const { near, far, proxy, lock } = stage;
  await stage.warm(near);
  const copying = proxy.copyCommand(runs("acquire"));
  const lease = await near.locks.lock(lock.name, options).lock(call);
  const copy = await copying;
  await lease.unlock();
  await far.locks.lock(lock.name).withLock(() => {});
  await copy.deliver();
  expect(await lock.holder()).toContain(near.locks.id);
  const [next, waited] = await timedAwake(far.locks.lock(lock.name).lock());
  expect(waited).toBeLessThan(AT_ONCE);
  expect(next.token).toBeGreaterThan(lease.token);
  await next.unlock();
  await lock.gone();
});

it("a lock: tryLock() that waits for 800 ms in another client has it", async () => {
  const { near, far, proxy, lock } = stage;
  await stage.warm(near);
  const copying = proxy.copyCommand(runs("acquire"));
  await near.locks.lock(lock.name).withLock(() => {});
  await (await copying).deliver();
  expect(await lock.holder()).toContain(near.locks.id);
  await using lease = await far.locks.lock(lock.name).tryLock(800);
  expect(lease?.held).toBe(true);
});

it("cached reads: the writer in another client has the lock at once", async () => {
  const { near, far, proxy, lock } = stage;
  await stage.warm(near);
  const reading = near.locks.readWriteLock(lock.name, { linger: 1_000 }).read;
  const writing = far.locks.readWriteLock(lock.name).write;
  const copying = proxy.copyCommand(takesReads);
  const copied = copying.then(() => true);
  // A client tries now and then whether caching a name pays.
  await until(() => reading.withLock(() => Promise.race([copied, nextTurn(false)])), {
    what: "reads to be cached",
  });
  const copy = await copying;
  await writing.withLock(() => {});
  await copy.deliver();
  expect(await reading.inspect()).toMatchObject({ holder: { id: expect.stringContaining(near.locks.id) } });
  const [lease, waited] = await timedAwake(writing.lock());
  expect(waited).toBeLessThan(AT_ONCE);
  await lease.unlock();
});

it("a recall that crosses the release of its hold costs no command, and no loss is reported", async () => {
  const { near, far, proxy, lock } = stage;
  const lost: unknown[] = [];
  near.locks.on("lost", (event) => lost.push(event));
  const { heard } = listenersOf(near.redis);
  await stage.warm(near);
  const lease = await near.locks.lock(lock.name).lock();
  proxy.record();
  proxy.freeze("commands");
  const unlocking = lease.unlock();
  const waiting = far.locks.lock(lock.name).lock();
  await until(() => heard.some((message) => message.startsWith("recall ")), { what: "a recall" });
  // The release is then sent once more, as text: after a withdrawal it would find nothing.
  await far.redis.script("FLUSH");
  proxy.thaw();
  await unlocking;
  await (await waiting).unlock();
  expect(lost).toEqual([]);
  expect(proxy.commands.filter(({ command }) => runs("leave")(command))).toEqual([]);
});
