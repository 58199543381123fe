/** How far a word counts as from its beginning: more than one slip, less than two. */
const BEGUN = 1.5;

/**
 * The word that was probably meant: the nearest one, if it is near enough to be a typing error.
 * Null: there is none.
 */
export function closest(typed: string, words: readonly string[]): string | null {
  let best: string | null = null;
  let least = Math.max(BEGUN, Math.min(3, Math.ceil(typed.length / 3)));
  for (const word of words) {
    const begun = word.startsWith(typed) ? BEGUN : Number.POSITIVE_INFINITY;
    const far = Math.min(begun, slips(typed.toLowerCase(), word.toLowerCase()));
    if (far > least || (far === least && best !== null)) continue;
    [best, least] = [word, far];
  }
  return best;
}

/**
 * The end of a sentence about a mistyped word: the word that was meant, otherwise the command that
 * lists them all, if there is one.
 */
export function didYouMean(typed: string, words: readonly string[], list = ""): string {
  const meant = closest(typed, words);
  if (meant !== null) return `: did you mean ${meant}?`;
  return list === "" ? "." : `: ${list} lists them.`;
}

/** How many letters are wrong, missing, extra, or swapped with the next one. */
function slips(from: string, to: string): number {
  // The typed word may have any length; a much longer one is no command or flag.
  if (Math.abs(from.length - to.length) > 3) return Number.POSITIVE_INFINITY;
  let [before, row]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}
