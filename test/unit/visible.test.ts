import fc from "fast-check";
import { expect, it } from "vitest";
import { harmless, readVisible, visible } from "../../src/util/visible.ts";
import { anyText } from "../support/any-text.ts";
import { HOSTILE, LONE, UNPRINTABLE } from "../support/hostile-texts.ts";

// How texts of other people are printed: by the command line, by messages, by the page, and as
// names of time series.

const ALL = [...HOSTILE, ...LONE];

/** As people see it: what Unicode calls the same has the same ink. */
const seen = (text: string): string => visible(text).normalize("NFC");

/** Texts in which what is hostile is frequent. */
const texts = fc
  .array(
    fc.oneof(
      fc.constantFrom(...ALL, ..."\\u0b1 '\"\0\x1b\u0301\u202e\ud83d\udc69", "\\u001b", "\\\\"),
      anyText(3),
      fc.string({ unit: "grapheme", maxLength: 3 }),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(""));

it("a printed text contains nothing that a terminal executes, that is invisible, or that reorders its neighbours", () => {
  for (const text of ALL) expect(visible(text)).not.toMatch(UNPRINTABLE);
  fc.assert(
    fc.property(texts, (text) => {
      expect(visible(text)).not.toMatch(UNPRINTABLE);
      expect(visible(text)).not.toMatch(/^ | $| {2}|\n/);
      expect(harmless(text)).not.toMatch(UNPRINTABLE);
    }),
  );
});

it("two different texts never look alike", () => {
  expect(new Set(ALL.map(seen)).size).toBe(ALL.length);
  fc.assert(fc.property(texts, texts, (a, b) => a === b || seen(a) !== seen(b)));
  // Two that differ in one character only.
  fc.assert(
    fc.property(texts, fc.nat(), anyText(1), (text, at, other) => {
      const place = at % (text.length + 1);
      const changed = text.slice(0, place) + other + text.slice(place + 1);
      return changed === text || seen(changed) !== seen(text);
    }),
  );
});

it("a printed text can be read back, and is never confused with another", () => {
  for (const text of ALL) expect(readVisible(visible(text))).toBe(text);
  fc.assert(fc.property(texts, (text) => readVisible(visible(text)) === text));
  for (const text of ["\\", "a\\x1b", "\\u00", "\\u00zz", "\\n"]) expect(readVisible(text)).toBeNull();
});

it("ordinary names stay as they are", () => {
  for (const name of [
    "order:42",
    "nightly invoice (web-1:4711)",
    "注文:四十二",
    "Zürich",
    "Việt Nam",
    "हिन्दी",
    "שָׁלוֹם",
    "ไม่ใช่",
    "👍🏽",
    "it's 100 %",
    "~!@#$%^&*()_+{}|:\"<>?[];',./",
  ])
    expect(visible(name.normalize("NFC"))).toBe(name.normalize("NFC"));
});

it("a line whose texts are already escaped stays as it is", () => {
  for (const text of ALL) expect(harmless(visible(text))).toBe(visible(text));
});

it("escaped JSON is the same JSON", () => {
  for (const text of ALL) {
    const json = harmless(JSON.stringify({ [text]: text }));
    expect(json).not.toMatch(UNPRINTABLE);
    expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify({ [text]: text })));
  }
});
