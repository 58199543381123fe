// On a real Redis; in virtual time: test/world/directed/late-and-lost.test.ts.

import { expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { Stage, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// What a cheaper exchange with Redis would break: commands that run long after they were sent, or
// whose process is gone.

const stage = new Stage();

it("the server is suspended, and a client that asked for 100 locks is killed: no lock is held when it goes on", async () => {
  const { far, server } = stage;
  const replyTimeout = 1_000;
  const actor = await Actor.start({ url: server.url, client: { replyTimeout } });
  const first = await actor.call("acquire", "lock", "first"); // it knows the server's time
  await actor.call("unlock", first?.handle ?? 0);
  const connection = String(await actor.call("command", "CLIENT", "ID"));
  const names = Array.from({ length: 100 }, (_, i) => `${stage.lock.name}:${i}`);
  const runs = async (): Promise<number> =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await far.redis.info("commandstats"))?.[1] ?? 0);
  const before = await runs();
  server.suspend();
  for (const name of names) actor.call("acquire", "lock", name).catch(() => {});
  await actor.call("block", 0); // its calls were made, and written at the end of their turn
  const since = performance.now();
  actor.kill("SIGKILL");
  await actor.exit;
  await until(() => performance.now() > since + 2 * replyTimeout, { what: "the commands to be late" });
  server.resume();
  // Of what a dead client has sent, a server runs only what it reads before it has answered.
  const isGone = async () => (await far.redis.call("CLIENT", "LIST", "ID", connection)) === "";
  await until(isGone, { what: "the server to close its connection" });
  expect(await runs()).toBeGreaterThan(before + 10);
  expect(await far.redis.exists(names.map((name) => `holdfast:{${name}}`))).toBe(0);
});

it("an acquire is sent again after a failover that lost a later holder: its token is above that holder's", async () => {
  const { near, far, proxy, lock } = stage;
  await near.locks.lock(lock.name).withLock(() => {});
  proxy.freeze("commands");
  const taking = near.locks.lock(lock.name).lock();
  const later = await far.locks.lock(lock.name).lock();
  await far.redis.flushall(); // the replica had neither that lock nor its token
  proxy.cut("commands");
  const lease = await taking;
  expect(lease.token).toBeGreaterThan(later.token);
  await expect(later.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await lease.unlock();
});

it.each(["lock", "fairLock"] as const)(
  "%s: a process is killed right after it has written its release: the waiter has it by one message",
  async (kind) => {
    const { far, lock, server } = stage;
    const actor = await Actor.start({ url: server.url });
    const held = await actor.call("acquire", kind, lock.name);
    const waiting = far.locks[kind](lock.name).lock();
    await lock.queued(1);
    actor.call("unlockAndDie", held?.handle ?? 0).catch(() => {});
    const [next, waited] = await timedAwake(waiting);
    expect(waited).toBeLessThan(10_000); // its lease is 30 s
    await actor.exit;
    await next.unlock();
  },
  60_000,
);

it.each(["lock", "fairLock"] as const)(
  "%s: its holder is killed, and a caller tries all the time: when the lock ends, the waiter is next",
  async (kind) => {
    const { far, near, lock, server } = stage;
    const actor = await Actor.start({ url: server.url, client: { leaseTime: 2_000 } });
    await actor.call("acquire", kind, lock.name);
    let isInside = false;
    const entering = far.locks[kind](lock.name)
      .lock()
      .finally(() => {
        isInside = true;
      });
    await lock.queued(1);
    actor.kill("SIGKILL");
    await actor.exit;
    const found: unknown[] = [];
    while (!isInside) found.push(await near.locks[kind](lock.name).tryLock());
    const next = await entering;
    expect(found.length).toBeGreaterThan(100);
    expect(found.every((lease) => lease === null)).toBe(true);
    await next.unlock();
  },
  60_000,
);
