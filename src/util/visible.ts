// How texts of others are printed: names of locks, labels, values, hosts, and Redis's errors. The
// command line, messages, the page and the names of time series all print them this way.

/**
 * Characters that a terminal acts on, that are invisible, that change the direction of writing, or
 * that every font draws alike; and spaces other than the ASCII one.
 */
const HIDDEN = String.raw`[\p{C}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Z}`;
/** Spaces that cannot be counted by eye: at the ends, and beside others. */
const SPACE = "^ | (?= |$)";
/** A letter with its marks. More marks would cover the lines above and below. */
const LETTER = String.raw`(\p{L}(?:(?!\p{Default_Ignorable_Code_Point})\p{M}){1,4})`;
/** Characters that combine to a letter that also exists as one character: both look the same. */
const PARTS = String.raw`\p{M}|[\u1160-\u11ff]`;

/** Compiled for the first text that needs it: at import these three would cost 1 ms more. */
const lazily = (source: string): (() => RegExp) => {
  let made: RegExp | null = null;
  return () => {
    made ??= new RegExp(source, "gu");
    return made;
  };
};

const harmful = lazily(HIDDEN);
const escaped = lazily(String.raw`\\|${SPACE}|${HIDDEN}|${LETTER}|\p{M}`);
const decomposed = lazily(String.raw`\\|${SPACE}|${HIDDEN}|${PARTS}`);
const PLAIN = /^[!-[\]-~]*$/;

/** Escaped as in JSON, but always by numbers. */
function numbered(text: string): string {
  if (text === "\\") return "\\\\";
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/**
 * The printed form of a text. Two different texts never look alike, and `readVisible()` returns the
 * text.
 */
export function visible(text: string): string {
  if (PLAIN.test(text)) return text;
  if (text.normalize("NFC") === text)
    return text.replace(escaped(), (one, kept?: string) => kept ?? numbered(one));
  // Letters that normalize to others, such as the Ångström sign, are not marks.
  const isOther = (one: string): boolean => one.normalize("NFC") !== one;
  return text
    .replace(decomposed(), numbered)
    .replace(/\P{ASCII}/gu, (one) => (isOther(one) ? numbered(one) : one));
}

/**
 * A line that contains texts of others, with nothing left that acts on a terminal. Parts that are
 * `visible` already stay as they are.
 */
export const harmless = (line: string): string => line.replace(harmful(), numbered);

/** The indivisible pieces of a printed text: escapes, and characters with their marks. */
export const piecesOf = (printed: string): readonly string[] =>
  printed.match(/\\u[0-9a-f]{4}|\\.|.\p{M}*/gsu) ?? [];

/** The text with this printed form, even one taken from quotes. Null: there is none. */
export function readVisible(printed: string): string | null {
  if (!/^(?:[^\\]|\\[\\']|\\u[0-9a-f]{4})*$/i.test(printed)) return null;
  return printed.replace(/\\(?:u([0-9a-f]{4})|(.))/gi, (_, unit: string | undefined, one: string) =>
    unit === undefined ? one : String.fromCharCode(Number.parseInt(unit, 16)),
  );
}
