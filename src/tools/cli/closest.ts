/** What counts for a word of which the beginning was typed: more than one slip, and less than two. */
const BEGUN = 1.5;

/**
 * The word that was probably meant: the nearest one, if it is near enough to be a slip of the
 * fingers. Null: none is.
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
 * How a sentence ends about a word that was mistyped: with the one that was meant, else with what
 * lists them all, if anything does.
 */
export function didYouMean(typed: string, words: readonly string[], list = ""): string {
  const meant = closest(typed, words);
  if (meant !== null) return `: did you mean ${meant}?`;
  return list === "" ? "." : `: ${list} lists them.`;
}

/** How many letters are wrong, missing, too many, or have changed places with the next one. */
function slips(from: string, to: string): number {
  // A word of any length is typed; what is much longer is none of ours.
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
