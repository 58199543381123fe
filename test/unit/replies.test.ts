import { expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { decodeCounted, decodeCountedInspection } from "../../src/redis/counted-replies.ts";
import { decodeObserved, decodeProclaimed } from "../../src/redis/election-replies.ts";
import { Fields, whole } from "../../src/redis/fields.ts";
import {
  decodeCount,
  decodeHandoffInspection,
  decodeRelease,
  decodeRenewals,
  decodeStayRenewals,
  readAttempt,
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
])("an answer about %s that no script gives causes an error that shows it: %j", (_, reply, decode) => {
  expect(() => decode(reply)).toThrow(/^Redis gave an unexpected answer, /);
});

it("the error shows the list in which a field is missing", () => {
  expect(() => whole([codes.OWNER, 5], readAttempt, 1_000, 0)).toThrow(
    new TypeError(`Redis gave an unexpected answer, [${codes.OWNER},5]`),
  );
});
