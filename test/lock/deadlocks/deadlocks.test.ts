import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { DeadlockError, Lease, LockClient, LockClientOptions } from "../../../src/index.ts";
import { freshName, Parties, type Party } from "../../support/fixture.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";

// Callers that wait for each other in a circle, in scopes that hold something. What takes 5 s takes 200 ms here.
vi.mock("../../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const NOTES = "holdfast:waits";
const parties = new Parties();
let warnings: string[] = [];
const warned = (warning: Error & { code?: string }): void => void warnings.push(`${warning.code}`);

beforeEach(() => {
  warnings = [];
  process.on("warning", warned);
});
afterEach(async () => {
  await parties.close();
  process.off("warning", warned);
});

const join = (deadlocks: LockClientOptions["deadlocks"] = "reject"): Promise<Party> =>
  parties.join({ client: { deadlocks } });

/** What was told of circles, and whether the client's caller was rejected. */
function listen(...all: LockClient[]): { name: string; rejected: boolean; cycle: string[] }[] {
  const told: { name: string; rejected: boolean; cycle: string[] }[] = [];
  for (const locks of all)
    locks.on("deadlock", ({ name, rejected, cycle }) =>
      told.push({ name, rejected, cycle: cycle.map((link) => link.name) }),
    );
  return told;
}

/** A body that holds the first lock, and wants the second when `go` says so. "both": it had them; else its error's code. */
async function chain(
  locks: LockClient,
  first: string,
  second: string,
  go: Promise<unknown>,
  signal?: AbortSignal,
) {
  const nested = () => locks.lock(second).withLock(() => "both", { signal });
  const body = async () => {
    await go;
    return nested();
  };
  return locks
    .lock(first)
    .withLock(body)
    .catch((error: DeadlockError) => error);
}

/** Callers that hold one name each, and want the next one's. */
function circle(clients: readonly LockClient[], signal?: AbortSignal) {
  const names = clients.map(() => freshName());
  const held = Promise.all(names.map((name, i) => until(() => clients[i]?.lock(name).isLocked())));
  const outcomes = clients.map((locks, i) =>
    chain(locks, names[i] ?? "", names[(i + 1) % names.length] ?? "", held, signal),
  );
  return { names, outcomes };
}

const codes = (outcomes: readonly unknown[]): unknown[] =>
  outcomes.map((one) => (one instanceof Error && "code" in one ? one.code : one)).sort();

it.each([
  ["two clients", 2],
  ["three clients", 3],
])("%s in a circle: one caller is rejected, with the circle, and the others go on", async (_, many) => {
  const all = await Promise.all(Array.from({ length: many }, () => join()));
  const told = listen(...all.map(({ locks }) => locks));
  const begun = performance.now();
  const { names, outcomes } = circle(all.map(({ locks }) => locks));
  const ended = await Promise.all(outcomes);
  expect(codes(ended)).toEqual(["DEADLOCK", ...Array.from({ length: many - 1 }, () => "both")]);
  const error = ended.find((one) => one instanceof Error) as DeadlockError;
  expect(error.cycle.map(({ name }) => name).sort()).toEqual([...names].sort());
  expect(error.cycle.at(0)?.name).toBe(error.lockName);
  expect(error.cycle.every(({ kind, holder }) => kind === "lock" && holder.pid === process.pid)).toBe(true);
  expect(error.stack).toContain("deadlocks.test.ts");
  expect(told).toEqual([
    { name: error.lockName, rejected: true, cycle: error.cycle.map(({ name }) => name) },
  ]);
  expect(performance.now() - begun).toBeGreaterThan(200);
  await until(async () => (await leftOf(all[0], names)) === 0);
  expect(warnings).toEqual([]);
});

/** Notes of scopes that hold these locks. */
async function notesOf(party: Party | undefined, names: readonly string[]): Promise<string[]> {
  const notes = (await party?.redis.zrange(NOTES, "0", "-1")) ?? [];
  return notes.filter((note) =>
    names.some((name) => note.startsWith(`handoff:${encodeURIComponent(name)} `)),
  );
}

const leftOf = async (party: Party | undefined, names: readonly string[]): Promise<number> =>
  (await notesOf(party, names)).length;

it("callers of one client in a circle: one is rejected", async () => {
  const { locks } = await join();
  const { outcomes } = circle([locks, locks]);
  expect(codes(await Promise.all(outcomes))).toEqual(["DEADLOCK", "both"]);
});

it("readers, a writer and several locks at once are seen too", async () => {
  const [one, other] = [await join(), await join()];
  const [shared, plain] = [freshName(), freshName()];
  const held = until(
    async () =>
      (await one.locks.lock(plain).isLocked()) && (await one.locks.readWriteLock(shared).read.isLocked()),
  );
  const ended = await Promise.all([
    one.locks
      .readWriteLock(shared)
      .read.withLock(async () => {
        await held;
        return one.locks.multiLock([plain, freshName()]).withLock(() => "both");
      })
      .catch((error: Error) => error),
    other.locks
      .lock(plain)
      .withLock(async () => {
        await held;
        return other.locks.readWriteLock(shared).write.withLock(() => "both");
      })
      .catch((error: Error) => error),
  ]);
  expect(codes(ended)).toEqual(["DEADLOCK", "both"]);
});

it("warn: an event for each caller and a process warning, and both wait on", async () => {
  const all = [await join("warn"), await join("warn")];
  const told = listen(...all.map(({ locks }) => locks));
  const enough = new AbortController();
  const { names, outcomes } = circle(
    all.map(({ locks }) => locks),
    enough.signal,
  );
  await until(() => told.length === 2);
  expect(told.map(({ name }) => name).sort()).toEqual([...names].sort());
  expect(told.every(({ rejected }) => !rejected)).toBe(true);
  await until(() => warnings.length > 0);
  expect(new Set(warnings)).toEqual(new Set(["DEADLOCK"]));
  await delay(300);
  expect(told.length).toBe(2);
  enough.abort(new Error("enough"));
  for (const one of await Promise.all(outcomes)) expect(one).toMatchObject({ message: "enough" });
});

it("off writes nothing, and nobody is told", async () => {
  const all = [await join("off"), await join("off")];
  const told = listen(...all.map(({ locks }) => locks));
  const enough = new AbortController();
  const { names, outcomes } = circle(
    all.map(({ locks }) => locks),
    enough.signal,
  );
  await delay(700);
  expect(await leftOf(all[0], names)).toBe(0);
  expect(told).toEqual([]);
  enough.abort(new Error("enough"));
  await Promise.all(outcomes);
});

it("a caller that does not wait for so long, and one whose scope holds nothing, write nothing", async () => {
  const [one, other] = [await join(), await join()];
  const [a, b] = [freshName(), freshName()];
  const lease = await other.locks.lock(b).lock();
  const soon = one.locks.lock(a).withLock(() => one.locks.lock(b).withLock(() => "both", { wait: 150 }));
  await expect(soon).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  const idle = one.locks.scope(() =>
    one.locks
      .lock(b)
      .lock()
      .then((lease) => lease.unlock()),
  );
  await delay(500);
  expect(await leftOf(one, [a, b])).toBe(0);
  await lease.unlock();
  await idle;
});

it("a chain that is none, and a hold that is let go while others look: nobody is rejected", async () => {
  const [one, other] = [await join(), await join()];
  const told = listen(one.locks, other.locks);
  const [a, b] = [freshName(), freshName()];
  const held = until(
    async () => (await one.locks.lock(a).isLocked()) && (await one.locks.lock(b).isLocked()),
  );
  const first = one.locks.scope(async () => {
    const lease = await one.locks.lock(a).lock();
    await held;
    const nested = one.locks.lock(b).lock();
    // Its first note stands, and says that it holds this one.
    await until(async () => (await leftOf(one, [a])) > 0);
    await lease.unlock();
    await (await nested).unlock();
    return "both";
  });
  expect(await Promise.all([first, chain(other.locks, b, a, held)])).toEqual(["both", "both"]);
  expect(told).toEqual([]);
});

it("a circle through a semaphore only warns", async () => {
  const [one, other] = [await join(), await join()];
  const told = listen(one.locks, other.locks);
  const [name, permits] = [freshName(), freshName()];
  const enough = new AbortController();
  const held = until(
    async () =>
      (await one.locks.lock(name).isLocked()) &&
      (await one.locks.semaphore(permits, { permits: 1 }).inspect()).used === 1,
  );
  const { signal } = enough;
  const both = [
    one.locks.lock(name).withLock(async () => {
      await held;
      return one.locks.semaphore(permits, { permits: 1 }).withPermits(() => "both", { signal });
    }),
    other.locks.semaphore(permits, { permits: 1 }).withPermits(async () => {
      await held;
      return other.locks.lock(name).withLock(() => "both", { signal });
    }),
  ];
  const ended = Promise.allSettled(both);
  await until(() => told.length === 2);
  expect(told.every(({ rejected }) => !rejected)).toBe(true);
  enough.abort(new Error("enough"));
  await ended;
  await until(() => warnings.includes("DEADLOCK"));
});

it("a note that has outlived its turn rejects nobody, although its hold is still there", async () => {
  const [one, other] = [await join(), await join()];
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
  expect(await notesOf(other, [a])).toContain(note);
  expect((await one.locks.lock(a).inspect()).holder).toBe(
    decodeURIComponent(/=([^=,]+)=/.exec(note)?.[1] ?? ""),
  );
  await taken?.unlock();
  expect(await second).toBe("both");
  await first;
  expect(told).toEqual([]);
});

it("notes that others have written, and that cannot be read: nobody is rejected", async () => {
  const [one, other] = [await join(), await join()];
  const told = listen(one.locks, other.locks);
  const [a, b] = [freshName(), freshName()];
  const lease = await other.locks.lock(b).lock();
  const hold = encodeURIComponent((await other.locks.lock(b).inspect()).holder ?? "");
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

it("Redis is away while they look: they wait on, and one is rejected when it is back", async () => {
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
