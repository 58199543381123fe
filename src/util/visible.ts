// How texts of other people are printed: names of locks, labels, values, hosts, and what Redis
// says. The command line, messages, the page and the names of time series all print them so.

/**
 * What a terminal acts on, what nobody sees, what turns the direction of writing, what every font
 * draws alike, and spaces other than that of ASCII.
 */
const HIDDEN = String.raw`[\p{C}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Z}`;
/** Spaces that nobody counts: at the ends, and beside others. */
const SPACE = "^ | (?= |$)";
/** A letter with its marks. What more there is spills over the lines above and below. */
const LETTER = String.raw`(\p{L}(?:(?!\p{Default_Ignorable_Code_Point})\p{M}){1,4})`;
/** Of what is composed of several characters, but need not be: the other way to write it looks the same. */
const PARTS = String.raw`\p{M}|[\u1160-\u11ff]`;

/** Made for the first text that needs it: an import that made these three would cost 1 ms more. */
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

/** As in JSON, and unlike there always by numbers. */
function numbered(text: string): string {
  if (text === "\\") return "\\\\";
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/**
 * A text of somebody else, as it is printed. Two different texts never look alike, and
 * `readVisible()` gives the text back.
 */
export function visible(text: string): string {
  if (PLAIN.test(text)) return text;
  if (text.normalize("NFC") === text)
    return text.replace(escaped(), (one, kept?: string) => kept ?? numbered(one));
  // Letters that stand for others, such as the sign of the Ångström, are no marks.
  const isOther = (one: string): boolean => one.normalize("NFC") !== one;
  return text
    .replace(decomposed(), numbered)
    .replace(/\P{ASCII}/gu, (one) => (isOther(one) ? numbered(one) : one));
}

/**
 * A line with texts of others in it, in which nothing acts on a terminal any more. What is
 * `visible` already stays as it is.
 */
export const harmless = (line: string): string => line.replace(harmful(), numbered);

/**
 * What a printed text is made of, of which no part is printed alone: escapes, and characters with
 * their marks.
 */
export const piecesOf = (printed: string): readonly string[] =>
  printed.match(/\\u[0-9a-f]{4}|\\.|.\p{M}*/gsu) ?? [];

/** The text that is printed so, also where it stood in quotes. Null: none is. */
export function readVisible(printed: string): string | null {
  if (!/^(?:[^\\]|\\[\\']|\\u[0-9a-f]{4})*$/i.test(printed)) return null;
  return printed.replace(/\\(?:u([0-9a-f]{4})|(.))/gi, (_, unit: string | undefined, one: string) =>
    unit === undefined ? one : String.fromCharCode(Number.parseInt(unit, 16)),
  );
}
