import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { Heat } from "../../src/tools/ui/heat.ts";
import { decodeTold, STREAM, type Told } from "../../src/tools/ui/observed.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";

// Entries of the observed stream that no `observe()` has written: any program with its few rights
// may write some.

const own = new OwnServer();

const good: Told = {
  client: "web-1:7:0123456789abcdef",
  waits: { "order:42": { "12": 3, "40": 1 } },
  events: [
    ["acquire", "order:42", 900, 30, null],
    ["giveup", "order:42", 800, 500, "timeout"],
    ["lost", "order:42", 700, 30_000, "expired"],
  ],
};
const event = (...changed: [number, unknown][]) => {
  const made: unknown[] = ["lost", "order:42", 700, 30_000, "expired"];
  for (const [at, value] of changed) made[at] = value;
  return { ...good, events: [made] };
};

/** What one process must not be able to do to the others, by what it says. */
const HOSTILE: readonly (readonly [string, unknown])[] = [
  ["no object", 7],
  ["null", null],
  ["an array", []],
  ["no client", { ...good, client: 7 }],
  ["a client without an end", { ...good, client: "x".repeat(100_000) }],
  ["no counts of a name", { ...good, waits: { a: null } }],
  ["counts that are a text", { ...good, waits: { a: "12" } }],
  ["a list in place of names", { ...good, waits: [[1]] }],
  ["a step that is none", { ...good, waits: { a: { x: 1 } } }],
  ["a step without an end", { ...good, waits: { a: { "1e9": 1 } } }],
  ["a negative step", { ...good, waits: { a: { "-1": 1 } } }],
  ["a count that is a text", { ...good, waits: { a: { "1": "1" } } }],
  ["a count below none", { ...good, waits: { a: { "1": -1 } } }],
  ["half a call", { ...good, waits: { a: { "1": 0.5 } } }],
  ["more calls than there are", { ...good, waits: { a: { "1": 1e300 } } }],
  ["an empty name", { ...good, waits: { "": { "1": 1 } } }],
  ["a name that no lock has", { ...good, waits: { ["x".repeat(600)]: { "1": 1 } } }],
  ["too many names", { ...good, waits: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [i, {}])) }],
  ["too many events", { ...good, events: Array(51).fill(good.events[0]) }],
  ["an event that is null", { ...good, events: [null] }],
  ["an event of an unknown kind", event([0, "won"])],
  ["an event of a kind that every object has", event([0, "constructor"])],
  ["an event without a name", event([1, {}])],
  ["an event at no time", event([2, null])],
  ["an event in the future", event([2, -1_000_000])],
  ["an event before there were computers", event([2, 1e300])],
  ["an event after no time", event([3, "soon"])],
  ["a reason that is a number", event([4, 5])],
  ["a reason that is an object", event([4, { toString: 1 }])],
  ["a reason without an end", event([4, "x".repeat(100_000)])],
  ["an event that goes on", event([5, 1])],
];
const add = (text: string, id = "*") => own.admin.xadd(STREAM, id, "told", text);

async function serve() {
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  return async (query: string) =>
    (await (await fetch(`${served.url}?part=state&${query}`)).json()) as Record<string, unknown>;
}

describe("an entry that fits is read as it is", () => {
  it("and so is what observe() writes at its bounds", () => {
    expect(decodeTold(JSON.stringify(good))).toEqual(good);
    const name = "\u0000".repeat(512);
    const names = Array.from({ length: 100 }, (_, i) => [
      `${i}${name}`.slice(0, 512),
      { "0": 1, "200": 9_999 },
    ]);
    const largest: Told = {
      client: good.client,
      waits: Object.fromEntries(names),
      events: Array.from({ length: 50 }, () => ["giveup", name, 5_000, 2 ** 40, "aborted"] as const),
    };
    expect(decodeTold(JSON.stringify(largest))).toEqual(largest);
  });

  it("a lock may be called as every object's own things are", () => {
    const text = JSON.stringify(good).replaceAll("order:42", "__proto__");
    const told = decodeTold(text);
    expect(Object.keys(told?.waits ?? {})).toEqual(["__proto__"]);
  });
});

it.each(HOSTILE)("%s is dropped whole", (_, told) => {
  expect(decodeTold(JSON.stringify(told))).toBeNull();
});

it("whatever an entry says, it is dropped, or nothing that reads it can fail", async () => {
  const { heats, read } = heatOf();
  const scalar = fc.oneof(fc.jsonValue(), fc.integer(), fc.double(), fc.string({ unit: "binary" }));
  /** A good entry, of which something is replaced by whatever there is. */
  const spoilt = fc.tuple(fc.integer({ min: 0, max: 30 }), scalar).map(([at, value]) => {
    let seen = 0;
    return JSON.stringify(good, (_, old) => (seen++ === at ? value : old)) ?? "";
  });
  const text = fc.oneof(
    spoilt,
    fc.json(),
    fc.string(),
    fc.jsonValue().map((value) => JSON.stringify(value)),
  );
  const seed = Date.now() & 0x7fffffff;
  await fc.assert(
    fc.asyncProperty(text, async (one) => {
      await read(one);
      for (const heat of heats()) {
        expect(heat.waits.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
        expect(heat.p95.every((ms) => ms === null || Number.isFinite(ms))).toBe(true);
      }
    }),
    { seed, numRuns: 1_000 },
  );
});

/** What reads entries, with a Redis that has the one that it is given. */
function heatOf() {
  let entry: unknown[] | null = null;
  let number = 0;
  const redis = {
    options: {},
    callBuffer: async (command: string) => {
      if (command === "TIME") return ["1000000000", "0"];
      const found = entry === null ? [] : [[`1000000000000-${++number}`, entry]];
      entry = null;
      return found;
    },
  };
  const heat = new Heat(redis as unknown as ConstructorParameters<typeof Heat>[0]);
  const read = async (text: string): Promise<void> => {
    entry = ["told", text];
    const before = heat.dropped;
    await heat.refresh();
    expect(heat.trouble).toBeNull();
    expect(heat.dropped - before).toBe(decodeTold(text) === null ? 1 : 0);
    heat.history("order:42").forEach(({ why, client, what, ago, waitedFor, heldFor }) => {
      expect([typeof client, typeof what, typeof ago, typeof (waitedFor ?? heldFor)]).toEqual([
        "string",
        "string",
        "number",
        "number",
      ]);
      expect(why === null || typeof why === "string").toBe(true);
    });
  };
  return { heats: () => heat.heats(), read };
}

describe("over a Redis", () => {
  it("hostile entries take no view with them: they are counted, and what else was told is shown", async () => {
    await own.admin.flushall();
    const state = await serve();
    const { locks } = await own.parties.join({ url: own.url });
    const name = freshName();
    await using _ = await locks.lock(name).lock();
    for (const [, told] of HOSTILE) await add(JSON.stringify(told));
    for (const text of ["", "{", "\u0000", '{"client":']) await add(text);
    await own.admin.xadd(STREAM, "*", "other", "x", "told", "y");
    await add(JSON.stringify(good));
    const bad = HOSTILE.length + 5;
    for (const view of ["now", "blocked", "heat", `lock&kind=lock&name=${name}`])
      expect(await state(`view=${view}`)).toMatchObject({
        trouble: null,
        untold: expect.stringContaining(`${bad} `),
      });
    expect(await state("view=now")).toMatchObject({ locks: [{ name }] });
    const heat = await state("view=heat");
    expect(heat).toMatchObject({ processes: 1, heats: [{ name: "order:42", losses: 1 }] });
    expect(await state("view=lock&kind=lock&name=order:42")).toMatchObject({
      history: [{ what: "lost", why: "expired" }, { what: "giveup" }, { what: "acquire" }],
    });
  });

  it("an entry from the future hides none of those after it, nor any once it has gone", async () => {
    await own.admin.flushall();
    const state = await serve();
    const [seconds] = await own.admin.time();
    const later = (Number(seconds) + 1_000_000) * 1_000;
    const named = (name: string) => JSON.stringify(good).replaceAll("order:42", name);
    await add(named("future"), `${later}-0`);
    await add(named("after"));
    const names = async () => {
      const { heats } = (await state("view=heat")) as { heats: { name: string; waits: number[] }[] };
      return heats.map(({ name, waits }) => `${name} ${waits.reduce((sum, one) => sum + one, 0)}`).sort();
    };
    expect(await names()).toEqual(["after 4", "future 4"]);
    await own.admin.del(STREAM);
    await add(named("anew"));
    await expect.poll(names, { timeout: 30_000 }).toEqual(["anew 4"]);
  });

  it("something else in place of the stream leaves the locks to be seen, and is told", async () => {
    await own.admin.flushall();
    const state = await serve();
    const { locks } = await own.parties.join({ url: own.url });
    const name = freshName();
    await using _ = await locks.lock(name).lock();
    await own.admin.set(STREAM, "x");
    expect(await state("view=now")).toMatchObject({
      trouble: null,
      locks: [{ name }],
      untold: expect.stringMatching(/WRONGTYPE/),
    });
    await own.admin.del(STREAM);
    await expect.poll(async () => (await state("view=now")).untold, { timeout: 30_000 }).toBeNull();
  });
});
