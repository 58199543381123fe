// Patterns for names. Redis would match bytes of encoded names, so it only gets a coarser pattern;
// the names that pass are matched here.

/** One character of a name, or any text. */
type Piece = "*" | ((character: string) => boolean);

/** A pattern for names: `*`, `?`, `[a-z]`, `[^a-z]`, and a backslash before a literal character. */
export class Glob {
  readonly #pieces: readonly Piece[];
  /**
   * The text between the wildcards, each of which may be any text: what matches the pattern matches
   * this too.
   */
  readonly literals: readonly string[];

  constructor(pattern: string) {
    const pieces: Piece[] = [];
    const literals = [""];
    const characters = [...pattern];
    for (let at = 0; at < characters.length; at++) {
      const character = characters[at] ?? "";
      const list = character === "[" ? listAt(characters, at + 1) : null;
      if (character === "*" || character === "?" || list) {
        if (character !== "*" || pieces.at(-1) !== "*")
          pieces.push(list ? list.fits : character === "*" ? "*" : anyOne);
        if (list) at = list.end;
        literals.push("");
        continue;
      }
      if (character === "\\" && at + 1 < characters.length) at++;
      const itself = characters[at] ?? "";
      pieces.push((one) => one === itself);
      literals[literals.length - 1] += itself;
    }
    this.#pieces = pieces;
    this.literals = literals;
  }

  /**
   * Takes time proportional to the length of the name times that of the pattern, because any caller
   * or client may have written them.
   */
  matches(name: string): boolean {
    const characters = [...name];
    let at = 0;
    let piece = 0;
    /** After the last `*`, and where its text ends so far. */
    let star = -1;
    let end = 0;
    while (at < characters.length) {
      const wanted = this.#pieces[piece];
      if (wanted === "*") {
        star = ++piece;
        end = at;
      } else if (wanted?.(characters[at] ?? "")) {
        piece++;
        at++;
      } else if (star >= 0) {
        piece = star;
        at = ++end;
      } else return false;
    }
    while (this.#pieces[piece] === "*") piece++;
    return piece === this.#pieces.length;
  }
}

const anyOne = (): boolean => true;

/** The characters between brackets. Null: the bracket is never closed, and so is literal. */
function listAt(characters: readonly string[], from: number) {
  const isOther = characters[from] === "^";
  const ranges: [string, string][] = [];
  let at = isOther ? from + 1 : from;
  for (; at < characters.length && characters[at] !== "]"; at++) {
    if (characters[at] === "\\" && at + 1 < characters.length) at++;
    const first = characters[at] ?? "";
    const last = characters[at + 2];
    const isRange = characters[at + 1] === "-" && last !== undefined && last !== "]";
    ranges.push([first, isRange ? last : first]);
    if (isRange) at += 2;
  }
  if (at === characters.length) return null;
  const code = (text: string): number => text.codePointAt(0) ?? 0;
  const fits = (one: string): boolean =>
    ranges.some(([first, last]) => code(first) <= code(one) && code(one) <= code(last)) !== isOther;
  return { end: at, fits };
}
