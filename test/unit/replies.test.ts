import { describe, expect, it } from "vitest";
import { ordered, type Procedure, read } from "../../src/redis/codec.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import { tokenTime } from "../../src/redis/fields.ts";
import { countedLua, electionLua, handoffLua, listLua } from "../../src/redis/lua.generated.ts";
import { readHeld } from "../../src/redis/replies.ts";
import type { Form } from "../../src/redis/script.ts";

const NOW = 1_800_000_000_000_000;

const script = <const F extends Form>(form: F) =>
  ({ name: "a/script", sha: "", lua: "", form }) satisfies Procedure;

describe("arguments", () => {
  const some = script({ args: ["hold", "lease"], more: ["entry", "told", "label"], replies: {} });

  it("are put in the order of the script, and those that say nothing are left out at the end", () => {
    const given = { lease: 5, hold: "a" };
    expect(ordered(some, given)).toEqual(["a", 5]);
    expect(ordered(some, { ...given, entry: "", told: 0, label: undefined })).toEqual(["a", 5]);
    expect(ordered(some, { ...given, told: 2, label: "" })).toEqual(["a", 5, "", 2]);
    expect(ordered(some, { ...given, label: "x" })).toEqual(["a", 5, "", "", "x"]);
  });

  it("that are always sent stay in their places", () => {
    expect(ordered(some, { hold: "", lease: 0 })).toEqual(["", 0]);
  });

  it("are repeated for several locks, and the last may be a list", () => {
    const all = [
      { hold: "a", ttl: 1, told: "-" },
      { hold: "b", ttl: 2, told: 2 },
    ];
    expect(ordered(handoffLua.renewStays, all)).toEqual(["a", 1, "-", "b", 2, 2]);
    const refs = script({ args: ["held", "refs"], replies: {} });
    expect(ordered(refs, { held: 1, refs: ["x", "y"] })).toEqual([1, "x", "y"]);
  });
});

describe("a reply", () => {
  const rows = {
    owner: { at: "µs", waits: "0|1", "told?": "0..2" },
    "released|gone": {},
    held: {
      ttl: "ms",
      inside: { "": { mode: "r|w" } },
      each: [{ "": { note: "text" } }],
      "...all": { mine: {} },
    },
  } as const;

  it("is read by its code, field by field", () => {
    expect(read(rows, [codes.OWNER, NOW, 1])).toEqual({ is: "owner", at: NOW, waits: true });
    expect(read(rows, [codes.OWNER, `${NOW}`, 0, 2])).toEqual({
      is: "owner",
      at: NOW,
      waits: false,
      told: 2,
    });
    expect([read(rows, codes.GONE), read(rows, [codes.GONE])]).toEqual([{ is: "gone" }, { is: "gone" }]);
    expect(read(rows, [codes.HELD, -1, ["w"], ["a", "b"], codes.MINE, codes.MINE])).toEqual({
      is: "held",
      ttl: Number.POSITIVE_INFINITY,
      inside: { mode: "w" },
      each: [{ note: "a" }, { note: "b" }],
      all: [{ is: "mine" }, { is: "mine" }],
    });
  });

  it("is read from bytes, and from strings for numbers, as libraries give them", () => {
    const expected = { is: "owner", at: NOW, waits: true };
    expect(read(rows, [codes.OWNER, Buffer.from(`${NOW}`), 1])).toEqual(expected);
    expect(read(rows, [`${codes.OWNER}`, Buffer.from(`${NOW}`), "1"])).toEqual(expected);
  });
});

const attempt = (reply: unknown) => read(handoffLua.acquire.form.replies, reply);
const units = (reply: unknown) => read(countedLua.acquire.form.replies, reply);
const permits = (reply: unknown) => read(countedLua.inspect.form.replies, reply);
const holder = (reply: unknown) => read(handoffLua.inspect.form.replies, reply);
const release = (reply: unknown) => read(handoffLua.release.form.replies, reply);
const renewals = (reply: unknown) => read(handoffLua.renew.form.replies, reply);
const kept = (reply: unknown) => read(handoffLua.renewStays.form.replies, reply);
const leader = (reply: unknown) => read(electionLua.observe.form.replies, reply);

it.each([
  ["an attempt", [codes.OWNER, NOW], attempt],
  ["an attempt", [codes.OWNER, NOW, 7, 0], attempt],
  ["an attempt", [codes.OWNER, NOW, NOW, 0, 0], attempt],
  ["an attempt", [codes.OWNER, NOW, NOW, 2], attempt],
  ["an attempt", [codes.HELD, NOW, "soon", 0, 0], attempt],
  ["an attempt", [codes.HELD, NOW, 10, -2, 0], attempt],
  ["an attempt", [codes.HELD, NOW, 10, 0, 3], attempt],
  ["an attempt", [codes.HELD, NOW, 1.5, 0, 0], attempt],
  ["an attempt", [codes.RENEWED, NOW], attempt],
  ["an attempt", [[codes.STALE], NOW], attempt],
  ["an attempt", [Buffer.from(`${codes.STALE}`), NOW], attempt],
  ["an attempt", [], attempt],
  ["an attempt", "OK", attempt],
  ["units", [codes.MINE, NOW, NOW, 1, 0], units],
  ["units", null, units],
  ["what is shown", [NOW, 5, 1, 2, ["x", "q", 1, NOW, 10], [], NOW], permits],
  ["what is shown", [NOW, 5, 1, 2, ["x", "p", 1, NOW], [], NOW], permits],
  ["what is shown", [NOW, 5, 1, 2, "none", [], NOW], permits],
  ["what is shown", [NOW, 7, NOW, 10, 0], holder],
  ["what is shown", [NOW, "", 0, 0, 0, "a waiter"], holder],
  [
    "what is shown",
    [codes.OWNER, "5", `${NOW}`],
    (reply: unknown) => read(listLua.redisson.form.replies, reply),
  ],
  ["what is shown", [`${NOW}`, "0", 5], (reply: unknown) => read(listLua.redisson.form.replies, reply)],
  ["what is shown", [NOW, []], (reply: unknown) => read(listLua.redisson.form.replies, reply)],
  ["a release", [codes.HELD, NOW], release],
  ["a release", {}, release],
  ["renewals", [codes.RENEWED, 10, codes.RENEWED], renewals],
  ["kept locks", [NOW, codes.RENEWED, 10, 0, 0, codes.OWNER, 1, 0, 0], kept],
  ["a leader", [NOW, 10, 1], leader],
  ["a proclamation", codes.RENEWED, (reply: unknown) => read(electionLua.proclaim.form.replies, reply)],
  ["a forced release", undefined, (reply: unknown) => read(handoffLua.forceRelease.form.replies, reply)],
  ["a taken lock", Buffer.from("6"), tokenTime],
  ["a taken lock", Buffer.from("17959000000000x0"), tokenTime],
  ["a taken lock", Buffer.from("0795900000000000"), tokenTime],
  ["a taken lock", Buffer.from("9999999999999999"), tokenTime],
  ["a taken lock", NOW, tokenTime],
  ["a held lock", codes.RELEASED, (reply: unknown) => readHeld(reply, NOW)],
  ["a held lock", codes.HELD_PACKED - 1, (reply: unknown) => readHeld(reply, NOW)],
  ["a held lock", codes.HELD_PACKED + 3, (reply: unknown) => readHeld(reply, NOW)],
  ["a held lock", 2 ** 53, (reply: unknown) => readHeld(reply, NOW)],
  ["a held lock", null, (reply: unknown) => readHeld(reply, NOW)],
  ["a held lock", "OK", (reply: unknown) => readHeld(reply, NOW)],
])("an answer about %s that no script gives causes an error that shows it: %j", (_, reply, decode) => {
  expect(() => decode(reply)).toThrow(/^Redis gave an unexpected answer, /);
});

it("the error shows the whole reply, whose texts may be bytes", () => {
  expect(() => attempt([codes.OWNER, Buffer.from("5")])).toThrow(
    new TypeError(`Redis gave an unexpected answer, [${codes.OWNER},"5"]`),
  );
});

it("a held lock in one number is as the script has packed it", () => {
  const pack = (early: number, ttl: number, place: number, told: number): number =>
    codes.HELD_PACKED + early * 2 ** 29 + ttl * 2 ** 12 + (place + 1) * 2 ** 2 + told;
  expect(readHeld(pack(0, 0, -1, 0), NOW)).toEqual({ is: "held", at: NOW, ttl: 0, position: null, flag: 0 });
  expect(readHeld(pack(5_000_000, 30_000, 0, 2), NOW)).toEqual({
    is: "held",
    at: NOW - 5_000_000,
    ttl: 30_000,
    position: 0,
    flag: 2,
  });
  // The largest of each; with `stringNumbers` ioredis gives a text.
  const most = { is: "held", at: NOW - 8_388_606, ttl: 131_071, position: 1_022, flag: 1 };
  expect(readHeld(pack(8_388_606, 131_071, 1_022, 1), NOW)).toEqual(most);
  expect(readHeld(`${pack(8_388_606, 131_071, 1_022, 1)}`, NOW)).toEqual(most);
});

it("a token that is a time is read from bytes, and from a text of a wrapped connection", () => {
  expect([tokenTime(Buffer.from(`${NOW}`)), tokenTime(`${NOW}`)]).toEqual([NOW, NOW]);
});
