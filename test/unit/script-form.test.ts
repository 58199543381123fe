import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path/posix";
import { describe, expect, it } from "vitest";
import { codes, words } from "../../src/redis/codes.generated.ts";
import { formOf } from "../../tools/build/script-form.mjs";

const root = new URL("../../lua/", import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, root), "utf8");

/** The code of a script, with the parts that it includes, without comments. */
function codeOf(path: string): string {
  return textOf(path)
    .replace(/^[ \t]*-- @include ([\w./-]+)$/gm, (_, part) => codeOf(join(path, "..", `${part}.lua`)))
    .replace(/--.*$/gm, "");
}

const scripts = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (path) => path.includes("/") && path.endsWith(".lua") && !textOf(path).startsWith("-- Included"),
);

describe.each(scripts)("%s", (path) => {
  const form = formOf(path, textOf);
  const code = codeOf(path);

  it("has the arguments that its header names", () => {
    if (!form || form.each) return;
    const used = [...code.matchAll(/ARGV\[(\d+)\]/g)].map(([, number]) => Number(number));
    const { args, more = [] } = form;
    const names = [...args, ...more];
    expect(Math.max(0, ...used)).toBeLessThanOrEqual(names.length);
    // A list at the end is read by a number that counts, and notAfter may be skipped by a copy's answer.
    if (!/ARGV\[[^\d#]/.test(code)) expect(names.filter((_, i) => !used.includes(i + 1))).toEqual([]);
  });

  it("answers with the codes that its header names, and with no others", () => {
    if (!form) return;
    const inHeader = new Set(
      JSON.stringify(form.replies)
        .match(/"[a-z|]+":\{/g)
        ?.flatMap((key) =>
          key
            .slice(1, -3)
            .split("|")
            .filter((word) => words.includes(word)),
        ),
    );
    const inCode = words.filter((word) => word && new RegExp(`\\b${word.toUpperCase()}\\b`).test(code));
    expect([...inHeader].sort()).toEqual(inCode.sort());
  });
});

it("the words of codes are those of their numbers", () => {
  expect(words.map((word) => codes[word.toUpperCase() as keyof typeof codes])).toEqual(
    words.map((_, number) => number || undefined),
  );
});

describe("a header", () => {
  const header = (argv: string, returns: string): string =>
    `-- It does it.\n--\n-- KEYS  lock\n-- ARGV  ${argv}\n-- RETURNS ${returns}\n-- INVARIANTS  None.\n`;
  const form = (argv: string, returns: string): unknown =>
    formOf("a/script.lua", () => header(argv, returns));

  it("says what a script takes", () => {
    expect(form("none", "RELEASED")).toEqual({ args: [], replies: { released: {} } });
    expect(form("1 hold   2 ttl ms   3 told?  a digit\n--       4 label?   of 1 call", "GONE")).toMatchObject(
      {
        args: ["hold", "ttl"],
        more: ["told", "label"],
      },
    );
    expect(form("for each lock: 1 hold   2 refs...", "GONE")).toMatchObject({
      args: ["hold", "refs"],
      each: true,
    });
  });

  it("says what a script answers", () => {
    const returns = [
      "{ OWNER | MINE, at µs, told? 0..2 }   it is owned",
      "         { HELD,",
      "           each [ mode r|w ], one { token, ...all { TAKEN } } }",
      "         RELEASED   GONE is for people",
      "         as are lines that begin so",
    ];
    expect(form("none", returns.join("\n--"))).toMatchObject({
      replies: {
        "owner|mine": { at: "µs", "told?": "0..2" },
        held: { each: [{ "": { mode: "r|w" } }], one: { "": { token: "token", "...all": { taken: {} } } } },
        released: {},
      },
    });
    expect(form("the caller's", "as SET")).toBeNull();
  });

  it("says that a script is like another one of its folder", () => {
    const texts: Readonly<Record<string, string>> = {
      "a/script.lua": header("as acquire, and a channel", "as acquire"),
      "a/acquire.lua": header("1 hold", "GONE"),
    };
    expect(formOf("a/script.lua", (path) => texts[path] ?? "")).toEqual({
      args: ["hold"],
      replies: { gone: {} },
    });
  });

  it.each([
    ["no argument has a name", "the hold", "GONE"],
    ["argument 3 comes after 1", "1 hold   3 ttl ms", "GONE"],
    ["ttl comes after one that may be left out", "1 hold?   2 ttl ms", "GONE"],
    ["no reply is defined", "none", "the number of keys"],
    ["two replies with gone", "none", "GONE\n--         { GONE, at µs }"],
    ["no type: ttl", "none", "{ ttl }"],
    ["no type: seconds", "none", "{ ttl seconds }"],
    ["no name of a field: GONE", "none", "{ at µs, GONE }"],
    ["two fields with the name at", "none", "{ at µs, at µs }"],
    ["a comma is missing", "none", "{ at µs ttl ms }"],
  ])("that is written in another way is refused: %s", (why, argv, returns) => {
    expect(() => form(argv, returns)).toThrow(`lua/a/script.lua: its header cannot be read: ${why}`);
  });
});
