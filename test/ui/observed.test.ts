import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { decodeTold, STREAM, type Told } from "../../src/tools/ui/observed.ts";
import { WaitTimes } from "../../src/tools/ui/wait-times.ts";
import { anyText } from "../support/any-text.ts";
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

describe("a valid entry is read as it is", () => {
  it("also if observe() writes it at its bounds", () => {
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

  it("a lock may have the name of a property that every object has", () => {
    const text = JSON.stringify(good).replaceAll("order:42", "__proto__");
    const told = decodeTold(text);
    expect(Object.keys(told?.waits ?? {})).toEqual(["__proto__"]);
  });
});

it.each(HOSTILE)("%s is dropped whole", (_, told) => {
  expect(decodeTold(JSON.stringify(told))).toBeNull();
});

it("any entry is dropped, or harms no reader", async () => {
  const { ended, read } = reader();
  const scalar = fc.oneof(fc.jsonValue(), fc.integer(), fc.double(), anyText());
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
      for (const { waits, p95 } of ended()) {
        expect(waits.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
        expect(p95.every((ms) => ms === null || Number.isFinite(ms))).toBe(true);
      }
    }),
    { seed, numRuns: 1_000 },
  );
});

/** What reads entries, with a Redis that has the one that it is given. */
function reader() {
  let entry: unknown[] | null = null;
  let number = 0;
  const link = {
    command: async () => ["1000000000", "0"],
    commandOn: async () => {
      const found = entry === null ? [] : [[`1000000000000-${++number}`, entry]];
      entry = null;
      return found;
    },
  };
  const waitTimes = new WaitTimes(link as unknown as ConstructorParameters<typeof WaitTimes>[0]);
  const read = async (text: string): Promise<void> => {
    entry = ["told", text];
    const before = waitTimes.dropped;
    await waitTimes.refresh();
    expect(waitTimes.trouble).toBeNull();
    expect(waitTimes.dropped - before).toBe(decodeTold(text) === null ? 1 : 0);
    waitTimes.history("order:42").forEach(({ why, client, what, ago, waitedFor, heldFor }) => {
      expect([typeof client, typeof what, typeof ago, typeof (waitedFor ?? heldFor)]).toEqual([
        "string",
        "string",
        "number",
        "number",
      ]);
      expect(why === null || typeof why === "string").toBe(true);
    });
  };
  return { ended: () => waitTimes.ended(), read };
}

describe("over a Redis", () => {
  it("hostile entries break no view: they are counted, and other reports are shown", async () => {
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
    for (const view of ["now", "blocked", "wait-times", `lock&kind=lock&name=${name}`])
      expect(await state(`view=${view}`)).toMatchObject({
        trouble: null,
        untold: expect.stringContaining(`${bad} `),
      });
    expect(await state("view=now")).toMatchObject({ locks: [{ name }] });
    expect(await state("view=wait-times")).toMatchObject({
      processes: 1,
      waitTimes: [{ name: "order:42", losses: 1 }],
    });
    expect(await state("view=lock&kind=lock&name=order:42")).toMatchObject({
      history: [{ what: "lost", why: "expired" }, { what: "giveup" }, { what: "acquire" }],
    });
  });

  it("an entry from the future hides none of the later ones, nor any once it has gone", async () => {
    await own.admin.flushall();
    const state = await serve();
    const [seconds] = await own.admin.time();
    const later = (Number(seconds) + 1_000_000) * 1_000;
    const named = (name: string) => JSON.stringify(good).replaceAll("order:42", name);
    await add(named("future"), `${later}-0`);
    await add(named("after"));
    const names = async () => {
      const { waitTimes } = (await state("view=wait-times")) as {
        waitTimes: { name: string; waits: number[] }[];
      };
      return waitTimes.map(({ name, waits }) => `${name} ${waits.reduce((sum, one) => sum + one, 0)}`).sort();
    };
    expect(await names()).toEqual(["after 4", "future 4"]);
    await own.admin.del(STREAM);
    await add(named("anew"));
    await expect.poll(names, { timeout: 30_000 }).toEqual(["anew 4"]);
  });

  it("another value in place of the stream leaves the locks visible, and is reported", async () => {
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
