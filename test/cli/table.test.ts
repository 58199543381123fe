import { expect, it } from "vitest";
import { type Column, table, widthOf, wrapped } from "../../src/tools/cli/table.ts";
import { visible } from "../../src/util/visible.ts";

// Tables for narrow terminals, of names that other programs have made up.

interface Row {
  readonly name: string;
  readonly holder: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "NAME", show: ({ name }) => name, weight: 1 },
  { title: "KIND", show: () => "2/3 slots", weight: 0, goes: 4 },
  { title: "HOLDER", show: ({ holder }) => holder, weight: 1 },
  { title: "HELD", show: () => "1 h 20 min", weight: 0, right: true, goes: 1 },
  { title: "LEFT", show: () => "no end", weight: 0, right: true, goes: 3 },
  { title: "WAIT", show: () => "3", weight: 0, right: true },
  { title: "LONGEST", show: () => "30 s", weight: 0, right: true, goes: 2 },
];

const ROWS: readonly Row[] = [
  { name: "order:42", holder: "nightly invoice (web-1:4711)" },
  { name: "\x1b[2J\r\n\u202e", holder: "\x07" },
  { name: "x".repeat(512), holder: "y".repeat(300) },
  { name: "注文:四十二:長い名前の鍵です", holder: "夜間 (web-1:1)" },
  { name: "e\u0301".repeat(30), holder: "👩‍💻 me" },
];

it.each([40, 48, 57, 72, 100])("a table of %i columns shows what fits, in lines of equal width", (width) => {
  const lines = table(COLUMNS, ROWS, width);
  for (const line of lines) {
    expect(widthOf(line)).toBeLessThanOrEqual(width);
    expect(line).not.toMatch(/\p{Cc}|\u202e/u);
  }
  // The last column is aligned to the right, so all lines end in it.
  expect(new Set(lines.map(widthOf)).size).toBe(1);
  expect(lines[0]).toMatch(/^NAME +.*HOLDER +.*WAIT/);
});

it.each([
  ["order:42", 8],
  ["Zürich", 6],
  ["注文", 4],
  ["한국", 4],
  ["ｗ", 2],
  ["⌚✅⚡", 6],
  ["👍🏽", 4],
  ["🇩🇪", 2],
  ["🌡☎", 2],
  ["हिन्दी", 3],
])("%s has %i columns", (text, columns) => {
  expect(widthOf(text)).toBe(columns);
});

it("a table cuts names in the middle, because many begin alike, and never inside an escape", () => {
  const names = ["customer:4711:invoice:2026-11:first", "customer:4711:invoice:2026-11:second"];
  const rows = [...names, visible("\x1b".repeat(40)), `${"e\u0331".repeat(60)}!`].map((name) => ({
    name,
    holder: "",
  }));
  for (let width = 30; width < 90; width++) {
    const [one, two, escapes, marks] = table(COLUMNS, rows, width)
      .slice(1)
      .map((line) => line.split(/ {2,}/)[0] ?? "");
    expect(one).not.toBe(two);
    expect(escapes).toMatch(/^(?:\\u001b)+…(?:\\u001b)*$/);
    expect(marks).toMatch(/^(?:e\u0331)+(?:…(?:e\u0331)+!)?!?$/u);
  }
});

it("a table drops the least informative columns first", () => {
  const titles = (width: number) => table(COLUMNS, ROWS, width)[0]?.split(/ +/);
  expect(titles(100)).toHaveLength(7);
  expect(titles(57)).toEqual(["NAME", "HOLDER", "HELD", "WAIT", "LONGEST"]);
  expect(titles(40)).toEqual(["NAME", "HOLDER", "WAIT"]);
});

it("a text that is too wide continues on indented lines, and no escape is broken", () => {
  expect(wrapped("ann holds a and waits for b", 12, "  ")).toEqual(["ann holds a", "  and waits", "  for b"]);
  expect(wrapped("  short", 12, "  ")).toEqual(["  short"]);
  const text = `ann holds ${visible("\x1b".repeat(9))} and 注文:四十二:長い名前の鍵です`;
  for (let width = 0; width < 90; width++) {
    const lines = wrapped(text, width, "  ");
    expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
    for (const line of lines) {
      expect(widthOf(line)).toBeLessThanOrEqual(Math.max(8, width));
      expect(line).toMatch(/^(?:\\u001b|[^\\])*$/);
    }
  }
});
