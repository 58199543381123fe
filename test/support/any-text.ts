import fc from "fast-check";

const codePoint = fc.integer({ min: 0, max: 0x10ffff }).filter((code) => code < 0xd800 || code > 0xdfff);

/**
 * Texts of any characters, also unprintable ones. fast-check's own takes a second of CPU time, once a
 * process, to list them all.
 */
export const anyText = (maxLength = 10): fc.Arbitrary<string> =>
  fc.array(codePoint, { maxLength }).map((codes) => String.fromCodePoint(...codes));
