import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { LockClient } from "../../src/index.ts";
import { decodeNote } from "../../src/locks/deadlocks/note.ts";
import { circlesOf, Deadlocks } from "../../src/tools/ui/deadlocks.ts";
import type { ShownCircle } from "../../src/tools/ui/shown.ts";
import { circle, leftOf } from "../support/circles.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { linkOf } from "../support/link.ts";
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

it("two callers that wait for each other appear not at the first sight, then with all that is known of them", async () => {
  const [one, other, eye] = [await join("ann"), await join("bob"), await parties.join()];
  const enough = new AbortController();
  const { names, outcomes } = circle([one.locks, other.locks], enough.signal);
  const [a = "", b = ""] = names;
  await until(async () => (await leftOf(eye, [a, b])) === 2);
  const reader = new Deadlocks(linkOf(eye.redis));
  expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  const [shown] = await until(async () => {
    const found = await look(reader, eye.locks, [a, b]);
    return found.length > 0 && found;
  });
  expect(shown).toMatchObject({ isSure: true, rejected: false });
  const known = { ann: [a, b], bob: [b, a] } as const;
  expect(shown?.cycle.map(({ holder }) => holder.label).sort()).toEqual(["ann", "bob"]);
  for (const { kind, name, holder, waitsFor, waitedFor } of shown?.cycle ?? []) {
    const [first, second] = known[holder.label as keyof typeof known];
    expect([{ kind, name }, waitsFor]).toEqual([
      { kind: "lock", name: first },
      { kind: "lock", name: second },
    ]);
    expect(waitedFor).toBeGreaterThan(200);
    // since its token: other tests may have put the clock of tokens on
    expect(holder.heldFor).toBeGreaterThanOrEqual(0);
  }
  // Notes alone show nothing: of these locks one is not shown as held.
  expect(await look(reader, eye.locks, [a])).toEqual([]);
  enough.abort();
  await Promise.all(outcomes);
  await until(async () => (await look(reader, eye.locks, [a, b])).length === 0);
});

it("an outdated note, and a note that is not refreshed, prove no deadlock", async () => {
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
    encodeURIComponent((await eye.locks.lock(name).inspect()).holder?.id ?? "");
  const [holdA, holdB] = [await holdOf(a), await holdOf(b)];
  /** As its client would have written it, so many seconds from now. */
  const write = async (turn: number, from: number) => {
    const [seconds = 0, us = 0] = (await eye.redis.time()).map(Number);
    const [end, after] = [(seconds + 20 + from) * 1_000, (seconds + from) * 1e6 + us];
    const noted = (ref: string, id: string, waits: string, hold: string) =>
      `${ref} ${end} ${id}/1 ${waits} 0 1 ${after} 0 ${ref}=${hold}=0`;
    await eye.redis.zadd(
      "holdfast:waits",
      ...[0, noted(ref, one.locks.id, wanted, `${holdA}=${turn}`)],
      ...[0, noted(wanted, other.locks.id, ref, `${holdB}=${second.token}`)],
    );
  };
  const forget = async () => {
    for (const lock of [ref, wanted])
      await eye.redis.zremrangebylex("holdfast:waits", `[${lock} `, `(${lock}!`);
  };
  const reader = new Deadlocks(linkOf(eye.redis));
  await write(first.token, -5);
  for (let i = 0; i < 3; i++) expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  await write(first.token + 1, -4);
  expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  await forget();
  // Nobody can have seen what is to come.
  await write(first.token, 5);
  for (let i = 0; i < 2; i++) expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  await forget();
  await write(first.token, 0);
  expect(await look(reader, eye.locks, [a, b])).toEqual([]);
  await forget();
  await write(first.token, 0);
  expect(await look(reader, eye.locks, [a, b])).toHaveLength(1);
  waiting.abort();
  await Promise.all(queued);
  await forget();
});

it("a crowd of callers costs little, and hides no deadlock", () => {
  const noted = (id: string, waits: string[], holds: string[]) => ({
    ...{
      id,
      waits: waits.map((name) => `handoff:${name}`),
      isRead: false,
      since: 1,
      after: 1,
      rejects: false,
    },
    holds: holds.map((name) => ({ ref: `handoff:${name}`, id: `hold-${id}`, turn: 1, isRead: false })),
  });
  const note = (id: string, waits: string, holds: string) => noted(id, [waits], [holds]);
  const crowd = Array.from({ length: 900 }, (_, i) =>
    note(`c${String(i).padStart(3, "0")}`, i % 2 ? "a" : `own${i - 1}`, `own${i}`),
  );
  const circle = [note("y", "b", "a"), note("z", "a", "b")];
  const idsOf = (notes: Parameters<typeof circlesOf>[0]) =>
    circlesOf(notes).map(({ callers }) => callers.map(({ note }) => note.id));
  const since = performance.now();
  expect(idsOf([...crowd, ...circle])).toEqual([["y", "z"]]);
  // A chain from one circle to another, of notes that have as much in them as a note may.
  const many = (what: string) => Array.from({ length: 62 }, (_, i) => `${what}${i}`);
  const chain = Array.from({ length: 300 }, (_, i) =>
    noted(`c${i}`, [`own${i + 1}`, ...many(`up${i}-`)], [`own${i}`, ...many(`up${i - 1}-`)]),
  );
  const [before, behind] = [noted("d", ["a"], ["b"]), noted("e", ["b", "own0"], ["a"])];
  const ends = [noted("f", ["y"], ["x", "own300"]), noted("g", ["x"], ["y"])];
  expect(idsOf([...chain, before, behind, ...ends])).toEqual([
    ["d", "e"],
    ["f", "g"],
  ]);
  expect(performance.now() - since).toBeLessThan(5_000);
});

it("a note with more than any client writes is ignored", () => {
  const note = (waits: number, holds: number) =>
    decodeNote(
      `x/1 ${Array(waits).fill("handoff:a").join()} 0 1 1 0 ${Array(holds).fill("handoff:b=h=1=0").join()}`,
    );
  expect(note(64, 64)?.holds).toHaveLength(64);
  expect([note(65, 1), note(1, 65)]).toEqual([null, null]);
});
