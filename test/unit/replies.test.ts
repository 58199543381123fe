import { expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { decodeCounted, decodeCountedInspection } from "../../src/redis/counted-replies.ts";
import { decodeObserved, decodeProclaimed } from "../../src/redis/election-replies.ts";
import { Fields, tokenTime, whole } from "../../src/redis/fields.ts";
import {
  decodeCount,
  decodeHandoffInspection,
  decodeRelease,
  decodeRenewals,
  decodeStayRenewals,
  readAttempt,
  readHeld,
} from "../../src/redis/replies.ts";

const NOW = 1_800_000_000_000_000;

it("fields are read in their order, each with its type", () => {
  const from = new Fields([NOW, `${NOW}`, "a text", 1, 0, -1, 5, ["inside"], 7, 8]);
  expect([from.number(), from.number(), from.text(), from.flag(), from.flag()]).toEqual([
    NOW,
    NOW,
    "a text",
    true,
    false,
  ]);
  expect([from.ttl(), from.ttl(), from.list().text()]).toEqual([Number.POSITIVE_INFINITY, 5, "inside"]);
  expect(from.each(() => from.number())).toEqual([7, 8]);
  expect([from.isOver, from.flag(), from.number(3), from.next()]).toEqual([true, false, 3, undefined]);
});

it.each([
  ["an attempt", [codes.OWNER, NOW], (reply: unknown) => whole(reply, readAttempt, 1_000, 0)],
  ["an attempt", [codes.HELD, NOW, "soon", 0, 0], (reply: unknown) => whole(reply, readAttempt, 1_000, 0)],
  ["an attempt", [codes.RENEWED, NOW], (reply: unknown) => whole(reply, readAttempt, 1_000, 0)],
  ["an attempt", "OK", (reply: unknown) => whole(reply, readAttempt, 1_000, 0)],
  ["units", [codes.MINE, NOW, NOW, 1, 0], (reply: unknown) => decodeCounted(reply, 1_000)],
  ["units", null, (reply: unknown) => decodeCounted(reply, 1_000)],
  ["what is shown", [NOW, 5, 1, 2, [["x", "q", 1, NOW, 10]], [], NOW], decodeCountedInspection],
  ["what is shown", [NOW, 5, 1, 2, "none", [], NOW], decodeCountedInspection],
  ["what is shown", [NOW, 7, NOW, 10, 0], decodeHandoffInspection],
  ["a release", [codes.HELD, NOW], decodeRelease],
  ["a release", {}, decodeRelease],
  ["renewals", [codes.RENEWED, 10, codes.RENEWED], decodeRenewals],
  ["kept locks", [NOW, codes.RENEWED, 10, 0, 0, codes.OWNER, 1, 0, 0], decodeStayRenewals],
  ["a leader", [NOW, 10, 1], decodeObserved],
  ["a proclamation", codes.RENEWED, decodeProclaimed],
  ["a forced release", undefined, decodeCount],
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

it("the error shows the list in which a field is missing", () => {
  expect(() => whole([codes.OWNER, 5], readAttempt, 1_000, 0)).toThrow(
    new TypeError(`Redis gave an unexpected answer, [${codes.OWNER},5]`),
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
