import { cells, markdownFiles, readText, splitCode } from "./markdown.ts";

const RULER = /^\|(?:\s*:?-+:?\s*\|)+\s*$/;

/** Lines that begin with a bar and follow each other. */
interface Block {
  readonly line: number;
  readonly rows: string[];
}

function blocks(markdown: string): Block[] {
  const found: Block[] = [];
  let open: Block | null = null;
  for (const [i, text] of splitCode(markdown).prose.entries()) {
    const row = text.trim();
    if (!row.startsWith("|")) open = null;
    else if (open) open.rows.push(row);
    else {
      open = { line: i + 1, rows: [row] };
      found.push(open);
    }
  }
  return found;
}

/**
 * Every table has a ruler below its head, and as many cells in each row. An empty line inside of a
 * table ends it: what follows has no ruler, and is shown as text.
 */
export function checkTables(root: string): string[] {
  return markdownFiles(root).flatMap((file) =>
    blocks(readText(root, file)).flatMap(({ line, rows: [head = "", ruler = "", ...rows] }) => {
      if (!RULER.test(ruler)) return [`${file}:${line}: a table without a ruler below its first row`];
      const width = cells(head).length;
      return [ruler, ...rows].flatMap((row, i) =>
        cells(row).length === width
          ? []
          : [`${file}:${line + 1 + i}: ${cells(row).length} cells in a table of ${width}`],
      );
    }),
  );
}
