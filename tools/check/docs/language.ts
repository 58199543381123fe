import { readText } from "./markdown.ts";
import { passages, readableFiles } from "./prose.ts";

const PREPOSITIONS = [
  "about|after|against|among|as|at|before|behind|beside|besides|between|beyond|but|by|during|except|for|from|in|inside",
  "into|like|near|of|off|on|onto|out|outside|over|past|since|than|through|till|to|toward|towards|under|until|up|upon",
  "with|within|without",
].join("|");

/**
 * The first group has pronouns that are always nouns; the second a "who" that is one by its
 * position.
 */
const NOUN = new RegExp(
  `\\b(whoever|whomever|whom)\\b|(?:^[^\\p{L}\\p{N}]*|[,;:(][\\s"'*_]*|\\b(?:${PREPOSITIONS})\\s+)\\b(who)\\b`,
  "giu",
);

/**
 * Sentences name their subject (caller, client, holder, waiter, process), because a bare "who"
 * leaves it to the reader which of them is meant. Questions and code may use "who", and so may "the
 * caller who asks".
 */
export function checkLanguage(root: string): string[] {
  return readableFiles(root).flatMap((path) =>
    passages(path, readText(root, path)).flatMap(({ text, line }) =>
      pronouns(text).map(({ word, at, sentence }) => {
        const place = `${path}:${line + text.slice(0, at).split("\n").length - 1}`;
        return `${place}: "${word}" stands where a noun should (caller, client, holder, waiter …): ${sentence}`;
      }),
    ),
  );
}

interface Pronoun {
  readonly word: string;
  /** Its position in the text. */
  readonly at: number;
  /** The beginning of its sentence. */
  readonly sentence: string;
}

/**
 * The words refused in a text, outside of questions. A single word in quotes is mentioned, not
 * used.
 */
export function pronouns(text: string): Pronoun[] {
  return sentences(text.replace(/"\w+"/g, (quoted) => `"${"-".repeat(quoted.length - 2)}"`)).flatMap(
    ({ sentence, at }) =>
      /\?["')\]*_]*$/.test(sentence)
        ? []
        : [...sentence.matchAll(NOUN)].map(({ 0: whole, 1: always, 2: here, index }) => ({
            word: always ?? here ?? "",
            at: at + index + whole.length - 1,
            sentence: sentence.replace(/\s+/g, " ").slice(0, 100),
          })),
  );
}

/** Sentences end at a full stop, an exclamation mark or a question mark before white space. */
function sentences(text: string): { sentence: string; at: number }[] {
  const ends = [...text.matchAll(/[.!?…]["')\]*_]*(?=\s)|$/g)].map(({ 0: end, index }) => index + end.length);
  return ends.map((end, i) => {
    const from = ends[i - 1] ?? 0;
    const sentence = text.slice(from, end).trim();
    return { sentence, at: text.indexOf(sentence, from) };
  });
}
