import { harmless, piecesOf } from "../../util/visible.ts";

/** A column of a table. */
export interface Column<T> {
  readonly title: string;
  /** Texts of others in their printed form: `visible()`. */
  readonly show: (row: T) => string;
  /** Its share of the excess width if the table is too wide; 0: it is never cut. */
  readonly weight: number;
  readonly right?: boolean;
  /**
   * If there is no room for all columns, the one with the largest number is removed first. Left
   * out: it stays.
   */
  readonly goes?: number;
}

const GAP = "  ";
const LEAST = 8;
/** Columns are removed before those that can be cut get narrower than this. */
const READABLE = 14;

/** Lines of a table, the titles first. `width`: columns of the terminal; Infinity: nothing is cut. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[], width: number): string[] {
  const cells = rows.map((row) => columns.map(({ show }) => harmless(show(row))));
  const all = [columns.map(({ title }) => title), ...cells];
  const wide = columns.map((_, i) => all.reduce((most, line) => Math.max(most, widthOf(line[i] ?? "")), 0));
  const first = tooMuch(columns, wide, width);
  if (first !== null)
    return table(
      columns.filter((one) => one !== first),
      rows,
      width,
    );
  const widths = narrowed(columns, wide, width);
  return all.map((line) =>
    columns
      .map(({ right }, i) => pad(squeezed(line[i] ?? "", widths[i] ?? 0), widths[i] ?? 0, right === true))
      .join(GAP)
      .trimEnd(),
  );
}

/** The column to remove first, if the others would be unreadable beside it. */
function tooMuch<T>(columns: readonly Column<T>[], wide: readonly number[], width: number): Column<T> | null {
  const least = columns.map(({ weight }, i) =>
    weight > 0 ? Math.min(wide[i] ?? 0, READABLE) : (wide[i] ?? 0),
  );
  if (least.reduce((sum, one) => sum + one, GAP.length * (columns.length - 1)) <= width) return null;
  const going = columns.filter(({ goes }) => goes !== undefined);
  return going.reduce<Column<T> | null>((a, b) => ((a?.goes ?? 0) > (b.goes ?? 0) ? a : b), null);
}

/** Takes the excess width from the columns that have a weight, the widest first. */
function narrowed<T>(columns: readonly Column<T>[], wide: readonly number[], width: number): number[] {
  const widths = [...wide];
  const total = () => widths.reduce((sum, one) => sum + one, GAP.length * (columns.length - 1));
  while (total() > width) {
    const load = (i: number) => ((widths[i] ?? 0) > LEAST ? (widths[i] ?? 0) * (columns[i]?.weight ?? 0) : 0);
    const widest = widths.reduce((best, _, i) => (load(i) > load(best) ? i : best), 0);
    if (load(widest) === 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function pad(text: string, width: number, isRight: boolean): string {
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return isRight ? space + text : text + space;
}

/** Cuts a text that is too wide, with "…" at its end. */
export const cut = (text: string, width: number): string =>
  widthOf(text) <= width ? text : `${beginning(piecesOf(text), width - 1)}…`;

/** The same in the middle, with a third of the room for its end: many names begin alike. */
function squeezed(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const pieces = piecesOf(text);
  const end = beginning([...pieces].reverse(), Math.floor((width - 1) / 3), (kept, one) => one + kept);
  return `${beginning(pieces, width - 1 - widthOf(end))}…${end}`;
}

/** Breaks a text that is too wide between its words, and a wider word too. Further lines are indented. */
export function wrapped(text: string, columns: number, indent: string): string[] {
  const width = Math.max(columns, indent.length + NARROWEST);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/(?<= )/)) {
    if (line.trim() !== "" && widthOf((line + word).trimEnd()) > width) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += word;
    while (widthOf(line.trimEnd()) > width) {
      const full = beginning(piecesOf(line), width);
      lines.push(full);
      line = indent + line.slice(full.length);
    }
  }
  return [...lines, line.trimEnd()];
}

/** Columns for the widest piece of a text, an escape. */
const NARROWEST = 6;

function beginning(
  pieces: readonly string[],
  width: number,
  add = (kept: string, one: string) => kept + one,
) {
  let kept = "";
  for (const one of pieces) {
    if (widthOf(kept) + widthOf(one) > width) break;
    kept = add(kept, one);
  }
  return kept;
}

/** Ideographs and characters as wide, and pictures; a flag is two letters of one column each. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u3247\u3250-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18d08}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]|(?![\u{1f1e6}-\u{1f1ff}])\p{Emoji_Presentation}/u;

/**
 * Columns of a terminal, approximately: combining characters have none, and ideographs and pictures
 * have two.
 */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const one of text) width += /\p{M}/u.test(one) ? 0 : WIDE.test(one) ? 2 : 1;
  return width;
}
