import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { LockClient } from "../../src/index.ts";
import { circlesOf, Deadlocks } from "../../src/ui/deadlocks.ts";
import type { ShownCircle } from "../../src/ui/shown.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Circles of callers, as the page reads them from Redis. What takes 5 s takes 200 ms here.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const parties = new Parties();
// Each client also warns of it, once.
const warned = (): void => {};
beforeEach(() => void process.on("warning", warned));
afterEach(() => void process.off("warning", warned));
afterEach(() => parties.close());

const join = (label: string): Promise<Party> => parties.join({ client: { deadlocks: "warn", label } });

/** Of this test alone: the server may have other notes. */
async function look(reader: Deadlocks, locks: LockClient, names: readonly string[]): Promise<ShownCircle[]> {
  await reader.refresh();
  const listed = [];
  for (const match of names) for await (const one of locks.list({ match })) listed.push(one);
  return reader.among(listed);
}

it("two callers that wait for each other: not at the first sight, then with all that is known of them", async () => {
  const [one, other, eye] = [await join("ann"), await join("bob"), await parties.join()];
  const [a, b] = [freshName(), freshName()];
  const enough = new AbortController();
  const held = until(
    async () => (await one.locks.lock(a).isLocked()) && (await one.locks.lock(b).isLocked()),
  );
  const nest = ({ locks }: Party, first: string, second: string) =>
    locks
      .lock(first)
      .withLock(async () => {
        await held;
        await locks.lock(second).withLock(() => {}, { signal: enough.signal });
      })
      .catch(() => {});
  const both = [nest(one, a, b), nest(other, b, a)];
  await until(
    async () =>
      (await eye.redis.zrange("holdfast:waits", "0", "-1")).filter((n) => n.includes(encodeURIComponent(a)))
        .length === 2,
  );
  const reader = new Deadlocks(eye.redis);
  expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  const [circle] = await until(async () => {
    const found = await look(reader, eye.locks, [a, b]);
    return found.length > 0 && found;
  });
  expect(circle).toMatchObject({ isSure: true, isRejected: false });
  const known = { ann: [a, b], bob: [b, a] } as const;
  expect(circle?.callers.map(({ owner }) => owner.label).sort()).toEqual(["ann", "bob"]);
  for (const { owner, holds, waitsFor, waited } of circle?.callers ?? []) {
    const [first, second] = known[owner.label as keyof typeof known];
    expect([holds, waitsFor]).toEqual([
      { kind: "lock", name: first },
      { kind: "lock", name: second },
    ]);
    expect(waited).toBeGreaterThan(200);
    expect(owner.for).toBeGreaterThanOrEqual(0); // since its token: other tests may have put the clock of tokens on
  }
  // Notes alone show nothing: of these locks one is not shown as held.
  expect(await look(reader, eye.locks, [a])).toEqual([]);
  enough.abort();
  await Promise.all(both);
  await until(async () => (await look(reader, eye.locks, [a, b])).length === 0);
});

it("a note of a former turn, and a note that is not written again, prove no circle", async () => {
  const [one, other, eye] = [await join("ann"), await join("bob"), await parties.join()];
  const [a, b] = [freshName(), freshName()];
  await using first = await one.locks.lock(a).lock();
  await using second = await other.locks.lock(b).lock();
  const waiting = new AbortController();
  const queued = [
    one.locks.outside(() => one.locks.lock(b).lock({ signal: waiting.signal })),
    other.locks.outside(() => other.locks.lock(a).lock({ signal: waiting.signal })),
  ].map((call) => call.catch(() => {}));
  const [ref, wanted] = [a, b].map((name) => `handoff:${encodeURIComponent(name)}`) as [string, string];
  const holdOf = async (name: string) =>
    encodeURIComponent((await eye.locks.lock(name).inspect()).holder ?? "");
  const [holdA, holdB] = [await holdOf(a), await holdOf(b)];
  const [seconds = "0"] = await eye.redis.time();
  const end = Number(seconds) * 1_000 + 20_000;
  /** As its client would have written it, so many seconds from now. */
  const write = (turn: number, from: number) =>
    eye.redis.zadd(
      "holdfast:waits",
      ...[
        0,
        `${ref} ${end + from} ${one.locks.id}/1 ${wanted} 0 1 ${(Number(seconds) + from) * 1e6} 0 ${ref}=${holdA}=${turn}=0`,
      ],
      ...[
        0,
        `${wanted} ${end + from} ${other.locks.id}/1 ${ref} 0 1 ${(Number(seconds) + from) * 1e6} 0 ${wanted}=${holdB}=${second.token}=0`,
      ],
    );
  const reader = new Deadlocks(eye.redis);
  await write(first.token, -5);
  for (let i = 0; i < 3; i++) expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  await write(first.token + 1, -4);
  expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  await eye.redis.zremrangebylex("holdfast:waits", `[${ref} `, `(${ref}!`);
  await eye.redis.zremrangebylex("holdfast:waits", `[${wanted} `, `(${wanted}!`);
  await write(first.token, 5);
  expect(await look(reader, eye.locks, [a, b])).toHaveLength(1);
  waiting.abort();
  await Promise.all(queued);
  await eye.redis.zremrangebylex("holdfast:waits", `[${ref} `, `(${ref}!`);
  await eye.redis.zremrangebylex("holdfast:waits", `[${wanted} `, `(${wanted}!`);
});

it("a crowd of callers costs little, and hides no circle", () => {
  const note = (id: string, waits: string, holds: string) => ({
    ...{ id, waits: [`handoff:${waits}`], isRead: false, since: 1, after: 1, rejects: false },
    holds: [{ ref: `handoff:${holds}`, id: `hold-${id}`, turn: 1, isRead: false }],
  });
  const crowd = Array.from({ length: 900 }, (_, i) =>
    note(`c${String(i).padStart(3, "0")}`, i % 2 ? "a" : `own${i - 1}`, `own${i}`),
  );
  const circle = [note("y", "b", "a"), note("z", "a", "b")];
  const since = performance.now();
  const found = circlesOf([...crowd, ...circle]);
  expect(found.map(({ callers }) => callers.map(({ note }) => note.id))).toEqual([["y", "z"]]);
  expect(performance.now() - since).toBeLessThan(1_000);
});
