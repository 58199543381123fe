import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { Keys } from "../../src/redis/keys.ts";
import { countedLua } from "../../src/redis/lua.generated.ts";
import { Dice } from "../chaos/dice.ts";
import { CountedStage } from "./stage.ts";

// The scripts of counted resources where nothing is unusual: short answers, and the same books as
// on the whole way.

const { OWNER, RELEASED } = codes;
const stage = new CountedStage();
const some = expect.anything();
const NEVER = Number.MAX_SAFE_INTEGER;
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const digits = (number: number): string => String(number).padStart(7, "0");

it("an acquire is answered with one text, and a release with one number", async () => {
  const hold = stage.permits("a", 5);
  expect(String(await stage.run("acquire", hold.id, 30_000, NEVER, "p", digits(1), digits(5)))).toMatch(
    /^\d{16}$/,
  );
  const field = await stage.redis.hget(stage.keys.hash, hold.id);
  expect(field).toBe(`1p ${field?.slice(3, 16)} 0000001 ${await stage.redis.get(stage.keys.clock)}`);
  expect(await stage.run("release", hold.id)).toBe(RELEASED);
  expect(await stage.redis.exists(stage.keys.hash)).toBe(0);
});

it("readers that share a token receive it, and an answer that is not the time", async () => {
  const [first, second] = [stage.reader("a"), stage.reader("b")];
  const token = ((await first.try()) as { token: number }).token;
  const args = [second.id, 30_000, NEVER, "r", digits(1), digits(1_000_000)];
  expect(await stage.run("acquire", ...args)).toEqual([OWNER, some, `${token}`, digits(1), 0, 0]);
});

it.each([1, 9_999_998])(
  "an acquire never grants more than there is, up to the largest number: %i and the rest",
  async (units) => {
    const most = 9_999_999;
    await stage.permits("a", most, units).try();
    expect(await stage.permits("b", most, most - units + 1).try()).toMatchObject({ is: "held" });
    expect(await stage.permits("c", most, most - units).try()).toMatchObject({ is: "owner" });
    expect(await stage.permits("d", most).try()).toMatchObject({ is: "held" });
    expect(await stage.books()).toMatchObject({ used: most, holds: 2 });
  },
);

it.each([
  ["units", 3, "abcdefg"],
  ["holds", 19, "0 0 0"],
  ["the last scan", 39, "-------------"],
  ["the phase", 53, "zzzzzzzzzzzzzzzz"],
])("unreadable books of the right length are rebuilt within a scan's period: %s", async (_, at, text) => {
  const [first, second] = [stage.permits("a", 5, 2), stage.permits("b", 5, 2)];
  await first.try();
  const books = (await stage.redis.hget(stage.keys.hash, "=")) ?? "";
  await stage.redis.hset(stage.keys.hash, "=", books.slice(0, at) + text + books.slice(at + text.length));
  expect(await second.try()).toMatchObject({ is: "owner" });
  const present = (await stage.redis.hget(stage.keys.hash, "=")) ?? "";
  expect(present).toHaveLength(86);
  if (at !== 53) expect(await stage.books()).toMatchObject({ used: 4, holds: 2 });
  await stage.redis.hset(stage.keys.hash, "=", `${present.slice(0, 39)}0000000000001${present.slice(52)}`);
  expect(await first.release()).toMatchObject({ is: "released" });
  expect(await stage.permits("c", 5, 3).try()).toMatchObject({ is: "owner" });
  expect(await stage.books()).toMatchObject({ used: 5, holds: 2 });
});

describe("the data written", () => {
  /** On the whole way: an argument that says what is so anyway keeps a script off the common one. */
  const ways = ["common", "whole"] as const;
  const keysOf = (way: string): string[] => {
    const { hash, queue, clients, clock } = new Keys("", false).ofCounted("semaphore", way);
    return [hash, queue, clients, clock];
  };
  const eval_ = (script: "acquire" | "release", way: string, args: (string | number)[]): Promise<unknown> =>
    stage.redis.evalsha(countedLua[script].sha, 4, ...keysOf(way), ...args);

  it.each(["p", "r"])(`is the same on both ways: %s (TEST_SEED=${SEED})`, async (mode) => {
    const dice = new Dice(SEED);
    const permits = mode === "p" ? 7 : 1_000_000;
    const held: { readonly id: string; readonly units: number }[] = [];
    for (let step = 0; step < 150; step++) {
      const isNew = held.length === 0 || (held.length < 9 && dice.pick([true, false]));
      const [one] = isNew ? [] : held.splice(held.indexOf(dice.pick(held)), 1);
      const { id } = one ?? stage.hold("a", { mode: "p" });
      const units = digits(one?.units ?? dice.pick(mode === "p" ? [1, 2, 3] : [1]));
      const answers: unknown[] = [];
      for (const way of ways) {
        const isWhole = way === "whole";
        const answer = one
          ? await eval_("release", way, isWhole ? [id, 0, 1] : [id])
          : await eval_("acquire", way, [
              ...[id, 30_000, NEVER, mode, units, digits(permits), 16],
              ...(isWhole ? [units] : []),
            ]);
        const isGot = one ? [answer].flat()[0] === RELEASED : !Array.isArray(answer) || answer[0] === OWNER;
        const [hash = ""] = keysOf(way);
        const { "=": books = "", ...fields } = await stage.redis.hgetall(hash);
        const ends = Object.values(fields).map((field) => Number(field.slice(3, 16)));
        const left = await stage.redis.pttl(hash);
        // Times differ, and what must be true of them does not.
        expect(Number(books.slice(25, 38) || 0)).toBeLessThanOrEqual(Math.min(...ends));
        if (books) expect(left).toBeGreaterThan(Math.max(...ends) - (await stage.millis()));
        expect(left).toBeLessThanOrEqual(60_000);
        const counts = [books.slice(0, 25), books.slice(71), books.length];
        const units_ = Object.entries(fields).map(([hold, field]) => [
          hold,
          field.slice(0, 3),
          field.slice(17, 25),
        ]);
        const tokens = Object.values(fields).map((field) => field.slice(25, 41));
        const isOnePhase =
          mode === "p" || new Set([...tokens, ...(books ? [books.slice(53, 69)] : [])]).size <= 1;
        answers.push([isGot, counts, units_.sort(), isOnePhase]);
      }
      expect(answers[0]).toEqual(answers[1]);
      if (!one && (answers[0] as unknown[])[0]) held.push({ id, units: Number(units) });
    }
  });
});
