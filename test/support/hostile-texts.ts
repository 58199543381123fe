// Texts of other people that do harm where they are printed raw: names of locks, labels, values,
// reasons.

/**
 * Characters that a terminal acts on, that are invisible, or that change the direction of writing.
 */
const INVISIBLE: readonly string[] = [
  "\x1b[2J\x1b[Hgone", // clears the screen
  "\x1b[31mred\x1b[0m",
  "\x1b]0;title\x07", // OSC, ended by BEL
  "\x1b]52;c;cm0gLXJm\x1b\\", // writes the clipboard
  "\x1bP$q\x1b\\", // asks the terminal to answer
  "\x9b2J", // CSI of C1
  "\x9d0;title\x9c",
  "a\0b",
  "a\bb",
  "a\rb",
  "a\nb",
  "a\tb",
  "a\x7fb",
  "a\x85b", // NEL
  "a\u2028b",
  "a\u2029b",
  "\u202egnp.exe",
  "\u2066a\u2069b",
  "a\u061cb",
  "a\u200bb",
  "a\u200cb",
  "a\u200db",
  "a\u2060b",
  "a\ufeffb",
  "a\u00adb", // soft hyphen
  "a\u034fb", // combining grapheme joiner
  "a\u115fb", // Hangul filler: a letter of no ink
  "a\u3164b",
  "a\u{e0041}b", // a tag
  "a\ufe0fb",
  "a\u2800b", // Braille of no dots
  "a\u00a0b",
  "a\u3000b",
  "a\ue000b", // private use
  "a\uffffb",
];

/** They look like other texts, or cover the text next to them. */
const ALIKE: readonly string[] = [
  " a",
  "a ",
  "a  b",
  "a b",
  "e\u0301", // é in two characters …
  "\u00e9", // … and in one
  "\u212b", // the Ångström sign …
  "\u00c5", // … and the letter
  "\u1100\u1161", // Hangul in letters …
  "\uac00", // … and as a syllable
  "\u0301a", // combines with the preceding character
  `z${"\u0353\u0300".repeat(40)}`,
  "👩‍💻",
  "👩💻",
  "🏴\u{e0067}\u{e0062}\u{e007f}",
  "w".repeat(400),
  "注".repeat(100),
];

/** They end the text around them in some other language. */
const BREAKING: readonly string[] = [
  "\\",
  "a\\u001bb",
  "a\\\\b",
  "a\\nb",
  "\\u{1b}",
  "'",
  '"',
  "`id`",
  "$(id)",
  "' or '1",
  '"><img src=x onerror=alert(1)>',
  "<script>alert(1)</script>",
  "</script><!--",
  "javascript:alert(1)",
  "&lt;b&gt;",
  "{{constructor.constructor('alert(1)')()}}",
  "\u0024{7*7}",
  "<%= 7*7 %>",
  "%s%d%c%o",
  '",lock="other"} 1\nholdfast_lock_held{lock="',
  "__proto__",
  "constructor",
  "toString",
  "--help",
  "-rf",
  "--",
  "*",
  "[a-z]?",
  "{other}",
  "../../etc/passwd",
  "%2e%2e%00",
  "a,b;c|d&e",
];

/** Each may be the name of a lock, and all are different. */
export const HOSTILE: readonly string[] = [...INVISIBLE, ...ALIKE, ...BREAKING];

/** No name has these, because they have no UTF-8 form. Texts from elsewhere may. */
export const LONE: readonly string[] = ["a\ud83d", "\udc69b", "\ud83dx\udc69"];

/**
 * One name with parts of most of them. Its beginning distinguishes it from the names of other
 * tests.
 */
export const worst = (beginning: string): string =>
  `${beginning} \x1b[2J\x1b]0;t\x07\x9b1m\r\n\t\x7f\u202e\u200b\u2028\\\\u0041\\'"<b>\u00a0\ufe0fe\u0301👩‍💻 `;

/** Characters that no output may contain, except at the ends of its lines. */
export const UNPRINTABLE = /[^\P{C}\n]|\p{Default_Ignorable_Code_Point}|(?! )\p{Z}|\u2800/u;
