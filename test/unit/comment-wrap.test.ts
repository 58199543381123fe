import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, it } from "vitest";
import { readableFiles } from "../../tools/check/docs/prose.ts";
import { wrapProse } from "../../tools/check/wrap/prose.ts";
import { longLines, wrapSource } from "../../tools/check/wrap/sources.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A sentence that is longer than a line. */
const LONG =
  "Every caller that waits here is told when the lock is free, in the order in which the callers came to it, one after the other.";
/** Where that is broken, in a comment of so many columns before its text. */
const [FIRST, SECOND] = [
  "Every caller that waits here is told when the lock is free, in the order in which the callers came",
  "to it, one after the other.",
];
const wrap = (...lines: string[]): string[] => wrapSource("a.ts", lines.join("\n")).split("\n");
const wrapLua = (...lines: string[]): string[] => wrapSource("a.lua", lines.join("\n")).split("\n");
const unchanged = (...lines: string[]): void => expect(wrap(...lines)).toEqual(lines);

it("comments are wrapped at 100 columns if one of their lines has more than 110", () => {
  expect(FIRST.length + 3).toBeGreaterThan(100);
  const short =
    "Every caller that waits here is told when the lock is free, in the order in which the callers";
  expect(wrap(`// ${LONG}`, "go();")).toEqual([`// ${short}`, `// came ${SECOND}`, "go();"]);
  expect(wrap(`/** ${LONG} */`, "go();")).toEqual([
    "/**",
    ` * ${short}`,
    ` * came ${SECOND}`,
    " */",
    "go();",
  ]);
  expect(wrap(`  /** ${LONG} */`, "go();")[1]).toBe(`   * ${short}`);
  expect(wrap("/**", ` * ${LONG}`, " */")).toEqual(["/**", ` * ${short}`, ` * came ${SECOND}`, " */"]);
  expect(wrapSource("a.pml", `/* ${LONG} */\n`)).toBe(`/* ${short}\n * came ${SECOND} */\n`);
  expect(wrapLua(`-- ${LONG}`, "go()")).toEqual([`-- ${short}`, `-- came ${SECOND}`, "go()"]);
  // Between 100 and 110 columns they stay as they are.
  unchanged(`// ${FIRST}`);
});

it("the lines of one paragraph are joined, and those of two are not", () => {
  expect(wrap(`// ${LONG.slice(0, -1)}, and`, "// never two at a time.")).toHaveLength(2);
  const text = [`// ${LONG}`, "//", "// A paragraph.", "// One more."];
  expect(wrap(...text).slice(2)).toEqual(text.slice(1));
  // It would have found room in the line before.
  const three = ["// A sentence.", "// One that was begun anew.", `// ${LONG}`];
  expect(wrap(...three).slice(0, 2)).toEqual(three.slice(0, 2));
  expect(wrap(`// ${LONG}`, `// RACE: ${LONG}`)[2]).toMatch(/^\/\/ RACE: Every/);
});

it("list items and tags are wrapped separately, and their continuation lines are indented", () => {
  expect(
    wrap("/**", ` * - ${LONG}`, " * - two", ` * 3. ${LONG}`, " */").map((line) => line.slice(0, 9)),
  ).toEqual(["/**", " * - Ever", " *   came", " * - two", " * 3. Eve", " *    cam", " */"]);
  const tags = wrap("/**", ` * @param a ${LONG}`, " * @returns what it was", ` * @throws ${LONG}`, " */");
  expect(tags.map((line) => line.slice(0, 10))).toEqual([
    "/**",
    " * @param ",
    " *   calle",
    " * @return",
    " * @throws",
    " *   calle",
    " */",
  ]);
});

it("examples, code, tables and directives stay as they are", () => {
  unchanged("/**", " * @example", ` * await ${LONG}`, " */");
  unchanged("/**", " * A command:", " *", ` *     ${LONG}`, " */");
  unchanged("/**", " * ```", ` * ${LONG}`, " * ```", " */");
  unchanged("/**", " * | a | b |", " * |---|---|", ` * | ${LONG} | b |`, " */");
  unchanged(`// biome-ignore lint/a/b: ${LONG}`);
  unchanged(`// https://example.com/${"a".repeat(120)}`);
  unchanged("const text = `", `// ${LONG}`, "`;");
});

it("the header of a script keeps its columns", () => {
  const header = [
    "-- KEYS  lock, queue",
    "-- ARGV  1 hold        never used before",
    `--       2 lease       ${LONG}`,
    `--       3 ${LONG}`,
    "-- RETURNS 1           it is",
    `-- INVARIANTS  ${LONG}`,
    "-- MODEL  `acquire`",
  ];
  expect(wrapLua(...header).map((line) => line.slice(0, 28))).toEqual([
    "-- KEYS  lock, queue",
    "-- ARGV  1 hold        never",
    "--       2 lease       Every",
    "--                     which",
    "--       3 Every caller that",
    "--         callers came to i",
    "-- RETURNS 1           it is",
    "-- INVARIANTS  Every caller ",
    "--         callers came to i",
    "-- MODEL  `acquire`",
  ]);
});

it("a comment after code that makes a line too long moves above it", () => {
  const code = 'await until(() => locks.lock("orders").isLocked());';
  expect(wrap(`  ${code} // ${LONG.slice(0, 70)}`)).toEqual([`  // ${LONG.slice(0, 70)}`, `  ${code}`]);
  unchanged(`  ${code} // short`);
  unchanged(`} else { // ${LONG}`);
});

it("no line begins with what would be an item, and no number is broken", () => {
  const words = `${"word ".repeat(18)}1234 of`; // with its mark 100 columns
  expect(wrap(`// ${words} - two of them, or more, at the same time`)[1]).toMatch(/^\/\/ of - two/);
  expect(wrap(`// ${words.slice(0, -2)}1 000 or more of them at the same time`)[1]).toMatch(/^\/\/ 1 000 or/);
});

it("the check reports lines that are too long, except those that cannot be broken", () => {
  const lines = [
    `// ${LONG}`,
    `const a = "${LONG}";`,
    `// https://example.com/${"a".repeat(120)}`,
    "// short",
  ];
  expect(longLines("a.ts", lines.join("\n"))).toEqual([1]);
  expect(longLines("a.lua", [`-- ${LONG}`, `local a = ${LONG}`, "go()"].join("\n"))).toEqual([1, 2]);
});

it("whatever is wrapped keeps its words, and stays as it is when it is wrapped again", () => {
  const word = fc.constantFrom(
    "a",
    "lock",
    "Redis",
    "is",
    "told.",
    "- ",
    "1.",
    "@see",
    "`a b`",
    "|",
    "RACE:",
    "200",
    "ms,",
  );
  const line = fc.tuple(fc.constantFrom("", "", "  ", "- "), fc.array(word, { maxLength: 60 }));
  const text = fc.array(
    line.map(([margin, all]) => `${margin}${all.join(" ")}`.trimEnd()),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(text, fc.boolean(), (lines, hasColumns) => {
      const limits = { width: 90, most: 100, hasColumns };
      const wrapped = wrapProse(lines, limits);
      expect(wrapped.join(" ").match(/\S+/g)).toEqual(lines.join(" ").match(/\S+/g));
      expect(wrapProse(wrapped, limits)).toEqual(wrapped);
    }),
    { numRuns: 500 },
  );
});

it("the comments of this project are wrapped without a change of its code, and only once", () => {
  const files = ["src", "lua"].flatMap((folder) => readableFiles(root, folder));
  expect(files.length).toBeGreaterThan(100);
  // Some: `npm run check:wrap` reads them all.
  for (const file of files.filter((_, i) => i % 8 === 0)) {
    const wrapped = wrapSource(file, readFileSync(join(root, file), "utf8"));
    expect(wrapSource(file, wrapped), file).toBe(wrapped);
  }
});
