import { afterAll, describe, expect, it } from "vitest";
import type { LockEvents, MultiLock } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { Gauges } from "../support/gauges.ts";
import { until } from "../support/until.ts";

// What the contract of each kind does not reach: calls for several locks.

const parties = new Parties();
afterAll(parties.close);

type Line = { event: string; name: string; kind: string; call: number };

async function join() {
  const { locks } = await parties.join();
  const gauges = new Gauges(locks);
  const told: Line[] = [];
  const hear = (event: Exclude<keyof LockEvents, "error">) =>
    locks.on(
      event,
      ({ name, kind, call }: Omit<Line, "event">) => void told.push({ event, name, kind, call }),
    );
  for (const event of ["acquire", "wait", "giveup", "release", "lost"] as const) hear(event);
  /** "acquire a, …", of one call of a multi-lock. */
  const story = (): string[] => {
    expect(new Set(told.map(({ kind, call }) => `${kind} ${call}`))).toEqual(
      new Set([`multi ${told[0]?.call}`]),
    );
    return told.map(({ event, name }) => `${event} ${name.slice(-1)}`);
  };
  return { locks, gauges, story };
}

const three = (): [string, string, string] => {
  const name = freshName();
  return [`${name}:a`, `${name}:b`, `${name}:c`];
};

describe("events of a multi-lock", () => {
  it("come for each of its locks, with one call", async () => {
    const { locks, gauges, story } = await join();
    const names = three();
    await locks.multiLock(names).withLock(() => {
      expect([gauges.waiters, gauges.holders]).toEqual([0, 3]);
    });
    expect(story()).toEqual(["acquire a", "acquire b", "acquire c", "release a", "release b", "release c"]);
    expect(gauges.holders).toBe(0);
  });

  it("name the lock that is busy, and those that were held meanwhile", async () => {
    const other = await parties.join();
    const { locks, gauges, story } = await join();
    const names = three();
    const held = await other.locks.lock(names[1]).lock();
    const waiting = locks.multiLock(names).lock();
    await until(() => gauges.waiters === 1 && gauges.holders === 1);
    await held.unlock();
    const lease = await waiting;
    expect([gauges.waiters, gauges.holders]).toEqual([0, 3]);
    await lease.unlock();
    expect(story()).toEqual([
      "acquire a",
      "wait b",
      "acquire b",
      "acquire c",
      "release a",
      "release b",
      "release c",
    ]);
    expect([gauges.waiters, gauges.holders, gauges.surprises]).toEqual([0, 0, []]);
  });

  it.each([
    [
      "busy",
      (lock: MultiLock) => lock.tryLock(),
      // It got some and not all, so it looked at the busy one once more, which was still held.
      ["acquire a", "release a"],
    ],
    [
      "timeout",
      (lock: MultiLock) => lock.tryLock(1_000), // so long a busy machine may take until it waits
      ["acquire a", "wait b", "release a"],
    ],
    [
      "aborted",
      async (lock: MultiLock, waits: () => Promise<unknown>) => {
        const leaving = new AbortController();
        const call = failure(lock.lock({ signal: leaving.signal }));
        await waits();
        leaving.abort("enough");
        return call;
      },
      ["acquire a", "wait b", "release a"],
    ],
  ] as const)("report once that the call gave up, and the busy lock: %s", async (why, act, before) => {
    const other = await parties.join();
    const { locks, gauges, story } = await join();
    const whys: string[] = [];
    locks.on("giveup", (event) => void whys.push(event.why));
    const names = three();
    await using held = await other.locks.lock(names[1]).lock();
    await act(locks.multiLock(names), () => until(() => gauges.waiters === 1));
    await until(() => gauges.holders === 0);
    expect(held.held).toBe(true);
    expect(whys).toEqual([why]);
    expect(story().sort()).toEqual([...before, "giveup b"].sort());
    expect([gauges.waiters, gauges.surprises]).toEqual([0, []]);
  });

  it("report once that the call gave up when the client closes, or is closed", async () => {
    const other = await parties.join();
    const { locks, gauges, story } = await join();
    const names = three();
    await using held = await other.locks.lock(names[0]).lock();
    const waiting = failure(locks.multiLock(names).lock());
    await until(() => gauges.waiters === 1);
    await locks.close();
    expect(await waiting).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(held.held).toBe(true);
    expect(story()).toEqual(["wait a", "giveup a"]);
    expect(await failure(locks.multiLock(names).lock())).toMatchObject({ code: "CLIENT_CLOSED" });
    expect([gauges.waiters, gauges.surprises]).toEqual([0, []]);
  });
});

describe("events", () => {
  it("of a lock on a silent Redis: the call gives up, and gives the reason", async () => {
    const { locks, redis } = await parties.join({ redis: { lazyConnect: true, enableOfflineQueue: false } });
    const gauges = new Gauges(locks);
    const whys: string[] = [];
    locks.on("giveup", ({ why }) => void whys.push(why));
    await failure(locks.lock(freshName()).tryLock());
    await failure(locks.multiLock([freshName(), freshName()]).lock());
    redis.disconnect();
    expect(whys).toEqual(["unavailable", "unavailable"]);
    expect([gauges.waiters, gauges.surprises]).toEqual([0, []]);
  });
});
