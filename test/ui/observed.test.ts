import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { decodeTold, STREAM, type Told } from "../../src/tools/ui/observed.ts";
import { WaitTimes } from "../../src/tools/ui/wait-times.ts";
import { anyText } from "../support/any-text.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { toldCall } from "../support/told-call.ts";

// Entries of the observed stream that no `observe()` has written: any program with its few rights
// may write some.

const own = new OwnServer();

const good: Told = {
  client: "web-1:7:0123456789abcdef",
  waits: { "order:42": { "12": 3, "40": 1 } },
  calls: [
    toldCall("order:42", "released", { ago: 900 }),
    toldCall("order:42", "giveup", { ago: 800, waitedFor: 500 }),
    toldCall("order:42", "lost", {
      token: 1_795_530_820_228_000,
      lease: 30_000,
      site: "pay (src/pay.ts:4:2)",
    }),
    toldCall("order:42", "holds", { ago: 0 }),
  ],
};
const call = (changed: object) => ({ ...good, calls: [{ ...toldCall("order:42", "lost"), ...changed }] });

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
  ["too many calls", { ...good, calls: Array(101).fill(good.calls[0]) }],
  ["a call that is null", { ...good, calls: [null] }],
  ["a call that is a list", { ...good, calls: [["lost", "order:42"]] }],
  ["a call with an unknown end", call({ how: "won" })],
  ["a call with an end that every object has", call({ how: "constructor" })],
  ["a call without a name", call({ name: {} })],
  ["a call of an unknown kind", call({ kind: "toString" })],
  ["a call without a number", call({ call: "1" })],
  ["a call at no time", call({ ago: null })],
  ["a call in the future", call({ ago: -1_000_000 })],
  ["a call before there were computers", call({ ago: 1e300 })],
  ["a call that waited for a text", call({ waitedFor: "soon" })],
  ["a holder without a time", call({ heldFor: null })],
  ["a holder that gave up", call({ how: "giveup" })],
  ["a reason that is a number", call({ why: 5 })],
  ["a reason that is an object", call({ why: { toString: 1 } })],
  ["a reason without an end", call({ why: "x".repeat(100_000) })],
  ["a token that is a text", call({ token: "7" })],
  ["a lease below none", call({ lease: -1 })],
  ["a line without an end", call({ site: "x".repeat(100_000) })],
  ["a call with a field more", call({ more: 1 })],
  ["a call with a field less", call({ site: undefined })],
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
      calls: Array.from({ length: 100 }, () =>
        toldCall(name, "lost", {
          ...{ ago: 5_000, waitedFor: 2 ** 40, heldFor: 2 ** 40, why: "\u0000".repeat(100), token: 2 ** 52 },
          ...{ lease: 2 ** 40, site: "\u0000".repeat(300) },
        }),
      ),
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
    waitTimes
      .calls({ kind: "lock", name: "order:42" }, [])
      .forEach(({ why, client, how, ago, waitedFor, heldFor, site }) => {
        const types = [client, how, ago, waitedFor].map((value) => typeof value);
        expect(types).toEqual(["string", "string", "number", "number"]);
        expect(heldFor === null || typeof heldFor === "number").toBe(true);
        for (const text of [why, site]) expect(text === null || typeof text === "string").toBe(true);
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
      reported: [{ how: "holds" }, { how: "lost", why: "expired" }, { how: "giveup" }, { how: "released" }],
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
