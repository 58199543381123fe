import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import type { Lease, LockClientOptions } from "../../src/index.ts";
import { circle, codes, leftOf, listen, NOTES, notesOf } from "../support/circles.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";

// What callers in scopes write down of what they wait for, where it is old, cannot be read, or
// Redis is away: nobody is rejected by it. What takes 5 s takes 200 ms here.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const parties = new Parties();
afterEach(parties.close);

const join = (deadlocks: LockClientOptions["deadlocks"] = "reject"): Promise<Party> =>
  parties.join({ client: { deadlocks } });

it("an outdated note rejects no caller, although its hold still exists", async () => {
  const [one, other] = [await join(), await join()];
  // The hold stays in Redis only if the caller after it gets it here, which takes a subscription.
  await warm(other, one);
  const told = listen(one.locks, other.locks);
  const [a, b] = [freshName(), freshName()];
  const held = until(
    async () => (await one.locks.lock(a).isLocked()) && (await one.locks.lock(b).isLocked()),
  );
  let next: Promise<Lease> | undefined;
  let note = "";
  const first = one.locks.scope(async () => {
    const lease = await one.locks.lock(a).lock();
    next = one.locks.outside(() => one.locks.lock(a).lock());
    await held;
    const nested = one.locks.lock(b).lock();
    note = await until(async () => (await notesOf(one, [a]))[0]);
    await lease.unlock();
    await (await nested).unlock();
  });
  const second = other.locks.lock(b).withLock(async () => {
    await until(() => note !== "");
    await next;
    return other.locks.lock(a).withLock(() => "both");
  });
  const taken = await until(() => note !== "").then(() => next);
  // As a late copy of the command would leave it, again and again.
  for (let i = 0; i < 60; i++) {
    await one.redis.zadd(NOTES, 0, note);
    await delay(10);
  }
  // The clients take away what has outlived its turn whenever they look.
  await until(async () => {
    await one.redis.zadd(NOTES, 0, note);
    return (await notesOf(other, [a])).includes(note);
  });
  expect((await one.locks.lock(a).inspect()).holder?.id).toBe(
    decodeURIComponent(/=([^=,]+)=/.exec(note)?.[1] ?? ""),
  );
  await taken?.unlock();
  expect(await second).toBe("both");
  await first;
  expect(told).toEqual([]);
});

it("foreign and unreadable notes reject no caller", async () => {
  const [one, other] = [await join(), await join()];
  const told = listen(one.locks, other.locks);
  const [a, b] = [freshName(), freshName()];
  const lease = await other.locks.lock(b).lock();
  const hold = encodeURIComponent((await other.locks.lock(b).inspect()).holder?.id ?? "");
  const waiting = one.locks.lock(a).withLock(() => one.locks.lock(b).withLock(() => "both"));
  const [mine, theirs] = [a, b].map((name) => `handoff:${encodeURIComponent(name)}`);
  for (let i = 0; i < 60; i++) {
    const now = Date.now();
    const [end, after] = [now + 20_000, (now + 60_000) * 1_000];
    const holds = `${theirs}=${hold}=${lease.token}=0`;
    await one.redis.zadd(
      NOTES,
      ...[0, `${theirs} ${end} ${other.locks.id}/1 ${mine} 0 1 ${after} 0 ${holds}`],
      ...[0, `${theirs} ${end} x%/2 ${mine},%E0 0 1 1 0 =`],
      ...[0, `${theirs} nonsense`],
      ...[0, `${theirs} 9999999999999 y/3 ${mine} 0 1 ${after} 0 ${holds}`],
    );
    await delay(10);
  }
  await lease.unlock();
  expect(await waiting).toBe("both");
  expect(told).toEqual([]);
});

it("callers wait on while Redis is away, and one is rejected when it is back", async () => {
  const far = await join();
  const { host = "", port = 0 } = far.redis.options;
  const proxy = await TcpProxy.start({ host, port });
  const all = [
    far,
    await parties.join({ url: proxy.url, client: { deadlocks: "reject", replyTimeout: 300 } }),
  ];
  const { names, outcomes } = circle(all.map(({ locks }) => locks));
  await until(async () => (await leftOf(far, names)) > 0);
  proxy.refuse(true);
  proxy.cut();
  await delay(500);
  proxy.refuse(false);
  expect(codes(await Promise.all(outcomes))).toEqual(["DEADLOCK", "both"]);
  await all[1]?.locks.close();
  await proxy.stop();
});
