/** How a line of a comment begins if it is not an ordinary line of a paragraph. */
interface Head {
  /** As written in the line, white space included. */
  readonly text: string;
  /** The column at which further lines of it begin, unless the author has indented them otherwise. */
  readonly hang: number;
  readonly isItem: boolean;
  /** Set in columns: a name, some blanks, an explanation. */
  readonly isRow: boolean;
}

/** Lines that are one paragraph, or that stay as they are. */
interface Block {
  readonly lines: string[];
  readonly indent: number;
  readonly head: Head | null;
  /** Where further lines begin; null while there is none, and the head decides. */
  hang: number | null;
  readonly isKept: boolean;
}

/** Columns up to which comments were wrapped by hand: a longer line is a paragraph of its own. */
const BY_HAND = 140;
const LABELLED = 8;
const DIRECTIVE = /^(biome-ignore|@ts-|@include|@vitest|@__|#region|#endregion|\/ <)/;
/** The author ended a shorter line on purpose. */
const SHORT = 95;
const ENDS_SENTENCE = /[.!?]["'”’)\]`*_]*$/;

export interface Limits {
  /** Columns of a line that is wrapped. */
  readonly width: number;
  /** Columns that a line may have before its paragraph is wrapped. */
  readonly most: number;
  /**
   * May there be lists in columns, as in the headers of scripts? Elsewhere indented text is code.
   */
  readonly hasColumns: boolean;
}

/**
 * Wraps the paragraphs of a comment in which a line is too long, and changes nothing else: other
 * paragraphs, tables, code in fences, below `@example` or indented, and directives of tools.
 *
 * A line break is kept where a list item, a tag, a `RACE:` or a row of a script's header begins,
 * and where a sentence ends although the next word would have fitted.
 *
 * @param lines the text of the comment, without what marks it as a comment
 */
export function wrapProse(lines: readonly string[], { width, most, hasColumns }: Limits): string[] {
  return split(lines, hasColumns).flatMap((block) => {
    const isLong = block.lines.some((line) => line.length > most);
    return isLong && !block.isKept ? fill(block, width) : block.lines;
  });
}

function split(lines: readonly string[], hasColumns: boolean): Block[] {
  const longest = Math.max(...lines.map(({ length }) => length).filter((length) => length <= BY_HAND), 0);
  const blocks: Block[] = [];
  let open: Block | null = null;
  let isFenced = false;
  let isExample = false;
  let rows = -1;
  const keep = (line: string): void => {
    blocks.push({ lines: [line], indent: 0, head: null, hang: null, isKept: true });
    open = null;
  };
  for (const line of lines) {
    const text = line.trimStart();
    const indent = line.length - text.length;
    const isFence = text.startsWith("```");
    if (text.startsWith("@")) isExample = text.startsWith("@example");
    if (isFence) isFenced = !isFenced;
    if (isFence || isFenced || isExample || text === "" || text.startsWith("|") || DIRECTIVE.test(text)) {
      keep(line);
      continue;
    }
    if (indent === 0) rows = /^ARGV +/.exec(text)?.[0].length ?? (/^[A-Z]{4,} /.test(text) ? -1 : rows);
    const head = headOf(line, indent, hasColumns && indent === rows);
    const before: Block | null = open;
    if (before && !head && goesOn(before, line, indent, longest)) {
      before.lines.push(line);
      if (before.lines.length === 2) before.hang = indent;
      continue;
    }
    // Text below an item belongs to it.
    const above = blocks.findLast(({ isKept }) => !isKept);
    const isCode = indent > 0 && !head?.isItem && !(above && hangOf(above) === indent);
    if (!hasColumns && (isCode || head?.isRow)) {
      keep(line);
      continue;
    }
    open = { lines: [line], indent, head, hang: null, isKept: false };
    blocks.push(open);
  }
  return blocks;
}

/** @param isArgument is the line among the arguments of a script? */
function headOf(line: string, indent: number, isArgument: boolean): Head | null {
  const [item] = /^ *(?:[-*+•] |\d+[.)] )/.exec(line) ?? [];
  if (item !== undefined) return { text: item, hang: item.length, isItem: true, isRow: false };
  const [row] = /^ *\S.* {2,}(?=\S)/.exec(line.replace(/`[^`]*`/g, (code) => "`".repeat(code.length))) ?? [];
  if (row !== undefined)
    return { text: line.slice(0, row.length), hang: hangOfRow(row), isItem: false, isRow: true };
  const [number] = (isArgument && /^ *\d+ /.exec(line)) || [];
  if (number !== undefined) return { text: number, hang: indent + 2, isItem: true, isRow: false };
  const [tag] = /^ *@\w+ */.exec(line) ?? [];
  if (tag !== undefined) return { text: tag, hang: indent + 2, isItem: true, isRow: false };
  if (/^ *RACE:/.test(line)) return { text: line.slice(0, indent), hang: indent, isItem: true, isRow: false };
  return null;
}

/** The text of a label of a script's header continues below the arguments. */
const hangOfRow = (row: string): number => (/^[A-Z]+ +$/.test(row) ? LABELLED : row.length);

const hangOf = ({ hang, head, indent }: Block): number => hang ?? head?.hang ?? indent;

function goesOn(block: Block, line: string, indent: number, longest: number): boolean {
  const { lines, head } = block;
  const isPlace =
    lines.length > 1 || head === null
      ? indent === hangOf(block)
      : indent > block.indent || /^ *(@|RACE:)/.test(lines[0] ?? "");
  return isPlace && !isBreak(lines.at(-1) ?? "", line.trimStart(), longest);
}

/** Did the author begin a new line here on purpose, and not for want of room? */
function isBreak(before: string, next: string, longest: number): boolean {
  const [word = ""] = next.split(" ", 1);
  const hadRoom = before.length > BY_HAND || before.length + 1 + word.length <= longest;
  return hadRoom && (ENDS_SENTENCE.test(before) || (before.length < SHORT && !/^[a-z(]/.test(next)));
}

function fill(block: Block, width: number): string[] {
  const [first = "", ...more] = block.lines;
  const head = block.head?.text ?? first.slice(0, block.indent);
  const text = [first.slice(head.length), ...more.map((line) => line.trim())].join(" ");
  const margin = " ".repeat(hangOf(block));
  const filled: string[] = [];
  let line = head;
  let isEmpty = true;
  for (const word of words(text)) {
    if (!isEmpty && line.length + 1 + word.length > width) {
      filled.push(line);
      line = margin;
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...filled, line];
}

/**
 * Pieces that must stay together: a word, a piece of code, a number; and with the preceding word, a
 * piece that would look like a new item.
 */
function words(text: string): string[] {
  const pieces =
    (text.split("`").length % 2 === 1 ? text.match(/(?:`[^`]*`|[^\s`])+/g) : text.match(/\S+/g)) ?? [];
  const together: string[] = [];
  for (const piece of pieces) {
    const looksNew = /^([-*+•]|\d+[.)]|@.*|\|.*|```.*|RACE:.*|biome-ignore.*)$/.test(piece);
    const isOfNumber = /\d$/.test(together.at(-1) ?? "") && /^(\d{3}|[mµ]?s|[kKMG]B|%|×)(?![\w])/.test(piece);
    if ((looksNew || isOfNumber) && together.length > 0) together.push(`${together.pop()} ${piece}`);
    else together.push(piece);
  }
  return together;
}
