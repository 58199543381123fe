import { cells, markdownFiles, readText, splitCode } from "./markdown.ts";

const RULER = /^\|(?:\s*:?-+:?\s*\|)+\s*$/;

/** Consecutive lines that begin with a bar. */
interface Block {
  readonly line: number;
  readonly rows: string[];
  /** Text on the line right below: Markdown takes it for a row. */
  textBelow: boolean;
}

function blocks(markdown: string): Block[] {
  const found: Block[] = [];
  let open: Block | null = null;
  for (const [i, text] of splitCode(markdown).prose.entries()) {
    const row = text.trim();
    if (!row.startsWith("|")) {
      if (open) open.textBelow = /^(?!#+ |[-*+>] |<)\S/.test(row);
      open = null;
    } else if (open) open.rows.push(row);
    else {
      open = { line: i + 1, rows: [row], textBelow: false };
      found.push(open);
    }
  }
  return found;
}

/**
 * Every table has a ruler below its head, and as many cells in each row. An empty line inside a
 * table ends it: the rows after it have no ruler, and are shown as text. Without an empty line
 * below a table, the text there is shown as its last row.
 */
export function checkTables(root: string): string[] {
  return markdownFiles(root).flatMap((file) =>
    blocks(readText(root, file)).flatMap(({ line, textBelow, rows: [head = "", ruler = "", ...rows] }) => {
      if (!RULER.test(ruler)) return [`${file}:${line}: a table without a ruler below its first row`];
      const width = cells(head).length;
      const wrong = [ruler, ...rows].flatMap((row, i) =>
        cells(row).length === width
          ? []
          : [`${file}:${line + 1 + i}: ${cells(row).length} cells in a table of ${width}`],
      );
      const below = line + 2 + rows.length;
      return textBelow ? [...wrong, `${file}:${below}: text right below a table is its last row`] : wrong;
    }),
  );
}
