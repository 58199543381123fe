import { markdownFiles, readText } from "./markdown.ts";
import { passages } from "./prose.ts";

/** Phrases that the docs no longer use, each with its replacement. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [
    /\bbehind (?=(?:an?|the|its|that|each) (?:\w+ )?(?:call|cut|end|failover|loss|release|unlock)\b)/giu,
    "after",
  ],
  [/\b(?:nobody|somebody|anybody)\b(?! else\b)/giu, "no process, another caller …"],
  [/\bin vain\b/giu, "without success"],
  [/\bfor ?ever\b/giu, "without limit"],
  [/\bat the most\b/giu, "at most"],
  [/\b(?:as little as|no more than)\b/giu, "only, at most"],
  [/\bso many\b/giu, "N, up to N"],
  [/\b(?:is|are|was|were) told\b/giu, "is notified, receives"],
  [/\b(?:hears?|heard)\b/giu, "receives, reported"],
  [/\b(?:stands|stood)\b/giu, "is, is suspended"],
  [/\b(?:gives?|gave) way\b|\blets? (?:it |the lock )?go\b/giu, "releases"],
  [/\bcircles?\b/giu, "deadlock"],
  [/\bheat\b/giu, "wait times"],
  [/\bpass(?:es|ed) (?:it |the lock )?on\b/giu, "hands off locally"],
  [/\bkept locks?\b/giu, "cached lock"],
  [/\basks? nobody\b/giu, "needs no round trip"],
  [/(?:^|[.!?]\s+)Of (?:what|an?|the|each|all)\b/gu, "begin with the subject"],
];

/** Pages for maintainers: the decisions, the engine's design, and the proofs. */
const MAINTAINERS = /^(?:proof\/|docs\/(?:decisions\/|protocol|maintaining))/;

/**
 * Finds words on users' pages that a native engineer would not write. A word may be right in its
 * place, so these are hints, not problems.
 */
export function wordHints(root: string): string[] {
  const pages = markdownFiles(root).filter((path) => !MAINTAINERS.test(path));
  return pages.flatMap((path) =>
    passages(path, readText(root, path)).flatMap(({ text, line }) =>
      WORDS.flatMap(([word, instead]) =>
        [...text.matchAll(word)].map(({ 0: found, index }) => {
          const place = `${path}:${line + text.slice(0, index).split("\n").length - 1}`;
          return `${place}: "${found.trim()}", plainer: ${instead}`;
        }),
      ),
    ),
  );
}
