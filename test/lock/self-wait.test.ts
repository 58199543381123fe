import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName, Parties, type Party, testUrl } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { named, TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// A caller that waits for the very code that has called it waits for ever, and is told so; callers
// that only wait long are not.

const KINDS = ["lock", "fairLock", "redissonLock", "spinLock"] as const;
/** What is renewed bears that the machine stands still for two thirds of this. */
const LEASE = 5_000;
const parties = new Parties();
const seen: (Error & { code?: string })[] = [];
const watch = (warning: Error & { code?: string }): void => void seen.push(warning);

beforeAll(() => void process.on("warning", watch));
afterAll(async () => {
  process.off("warning", watch);
  await parties.close();
});

const join = (): Promise<Party> => parties.join({ client: { leaseTime: LEASE } });
/** The warnings about these locks: the tests run side by side, for most of their time they wait. */
const told = (...names: readonly string[]) =>
  seen.filter(
    ({ code, message }) => code === "LOCK_SELF_WAIT" && names.some((name) => message.includes(name)),
  );

// Each kind has its one warning in the contract.
it.concurrent("a caller that waits for its own client: a warning, and no second one within a minute", async () => {
  const { locks } = await join();
  const waits: unknown[] = [];
  locks.on("wait", ({ name, heldBy }) => waits.push([name, heldBy]));
  const names = [freshName(), freshName()];
  const held = await Promise.all(names.map((name) => locks.lock(name).lock()));
  const waiting = names.map((name) => locks.lock(name).lock());
  await until(() => names.every((name) => waits.some((one) => `${one}` === `${name},this client`)));
  expect(told(...names)).toMatchObject([
    { message: expect.stringContaining(`which this process (pid ${process.pid}) holds`) },
  ]);
  for (const lease of held) await lease.unlock();
  for (const one of waiting) await (await one).unlock();
});

describe.concurrent.each(KINDS)("%s", (kind) => {
  it("a caller whose lock another client of its process holds: the warning too, unless the lock is in another database", async ({
    onTestFinished,
  }) => {
    const url = `${testUrl()}/1`;
    const [outer, inner, away] = [
      await join(),
      await join(),
      await parties.join({ url, client: { leaseTime: LEASE / 2 } }),
    ];
    const [waits, elsewhere] = [[], []] as [unknown[], unknown[]];
    inner.locks.on("wait", ({ heldBy }) => waits.push(heldBy));
    away.locks.on("wait", ({ heldBy }) => elsewhere.push(heldBy));
    const name = freshName();
    const enough = new AbortController();
    // Another process holds it in the other database, as its first hold too.
    const other = await Actor.start({ url, client: { leaseTime: LEASE } });
    onTestFinished(() => other.kill());
    await other.call("acquire", kind, name);
    await lockOf(outer.locks, kind, name).withLock(async () => {
      lockOf(away.locks, kind, name)
        .withLock({ signal: enough.signal }, () => "never")
        .catch(() => {});
      const nested = lockOf(inner.locks, kind, name)
        .withLock({ signal: enough.signal }, () => "never")
        .catch(() => "given up");
      await until(() => told(name).length > 0, { what: "the warning" });
      enough.abort();
      expect(await nested).toBe("given up");
    });
    expect(told(name)).toMatchObject([
      { message: expect.stringContaining("another lock client of this process") },
    ]);
    expect(waits).toEqual(["unknown", "this process"]);
    expect(elsewhere).toEqual(["unknown"]);
  });
});

it.concurrent("candidates of one election wait on purpose: no warning, except for a caller that came later", async () => {
  const [candidates, control] = [await join(), await join()];
  const waits: unknown[] = [];
  for (const { locks } of [candidates, control])
    locks.on("wait", ({ kind, heldBy }) => waits.push(`${kind}: ${heldBy}`));
  const candidacy = freshName();
  const election = candidates.locks.election(candidacy, { lease: LEASE });
  const term = await election.campaign();
  const next = election.campaign();
  await until(() => waits.includes("election: unknown"));
  const lock = control.locks.fairLock(freshName());
  const lease = await lock.lock();
  const waiting = lock.lock();
  await until(() => told(lock.name).length > 0, { what: "the warning" });
  await term.resign();
  await (await next).resign();
  await lease.unlock();
  await (await waiting).unlock();
  expect(told(candidacy)).toEqual([]);
  expect(waits.filter((one) => `${one}`.startsWith("election"))).toEqual(["election: unknown"]);
});

it.concurrent("callers that each hold a lock for longer than a lease, of one client or of two: no warning", async () => {
  const [one, other] = [await join(), await join()];
  const jobs = [one, one, one, other].flatMap(({ locks }) =>
    KINDS.map((kind) => lockOf(locks, kind, `self-wait:${kind}`)),
  );
  await Promise.all(jobs.map((lock) => lock.withLock({ wait: 60_000 }, () => delay(1.1 * LEASE))));
  expect(told("self-wait:")).toEqual([]);
}, 90_000);

it.concurrent("a caller that came before the holder got it, and is ahead in the queue, does not hide one that waits for itself", async () => {
  const { locks } = await join();
  const lock = locks.lock(freshName());
  const first = await lock.lock();
  const second = lock.lock();
  const third = lock.lock();
  await first.unlock();
  const held = await second;
  const fourth = lock.lock(); // by the code that holds it, behind the third caller, which waits for the same
  await until(() => told(lock.name).length > 0);
  await held.unlock();
  await (await third).unlock();
  await (await fourth).unlock();
});

it("a wait no longer than a lease costs no further command", async () => {
  const far = await join();
  const proxy = await TcpProxy.start({
    host: far.redis.options.host ?? "",
    port: far.redis.options.port ?? 0,
  });
  const near = await parties.join({ url: proxy.url });
  const name = freshName();
  const held = await far.locks.lock(name).lock();
  proxy.record();
  const waiting = near.locks.lock(name).lock();
  await until(async () => (await far.locks.lock(name).inspect()).waiters?.length === 1);
  await held.unlock();
  await (await waiting).unlock();
  expect(
    proxy.commands.filter(({ command }) => named("evalsha", "eval")(command)).length,
  ).toBeLessThanOrEqual(8);
  await near.locks.close();
  await proxy.stop();
});
