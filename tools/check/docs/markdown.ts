import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A fenced block of code. */
export interface CodeBlock {
  /** The text after the opening fence, such as "ts". */
  readonly info: string;
  readonly code: string;
  /** The line of its first line of code, from 1. */
  readonly line: number;
}

export interface Link {
  readonly target: string;
  readonly line: number;
}

const SKIPPED = new Set(["node_modules", "dist", "coverage"]);

/**
 * The paths of all Markdown files below a project folder, relative to it; hidden and generated
 * folders are skipped.
 */
export function markdownFiles(root: string, folder = ""): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !name.startsWith(".") && !SKIPPED.has(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return markdownFiles(root, path);
      return entry.name.endsWith(".md") ? [path] : [];
    })
    .sort();
}

export function readText(root: string, path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The code blocks, and the text with their lines blanked, so that line numbers stay. */
export function splitCode(markdown: string): { blocks: CodeBlock[]; prose: string[] } {
  const blocks: CodeBlock[] = [];
  let open: { fence: string; info: string; line: number; lines: string[] } | null = null;
  const prose = markdown.split("\n").map((text, i) => {
    const [, fence, info = ""] = /^\s*(`{3,}|~{3,})(.*)$/.exec(text) ?? [];
    if (open && fence?.startsWith(open.fence) && info.trim() === "") {
      blocks.push({ info: open.info, code: open.lines.join("\n"), line: open.line });
      open = null;
      return "";
    }
    if (open) open.lines.push(text);
    else if (fence) open = { fence, info: info.trim(), line: i + 2, lines: [] };
    else return text;
    return "";
  });
  return { blocks, prose };
}

/** The headings outside of code, as written. */
export function headings(markdown: string): string[] {
  return splitCode(markdown).prose.flatMap((text) => /^#{1,6} +(.*?) *#*$/.exec(text)?.[1] ?? []);
}

/** The anchors that GitHub gives to headings; a repeated one gets -1, -2 … */
export function anchors(markdown: string): Set<string> {
  const found = new Set<string>();
  for (const heading of headings(markdown)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = plain.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "").replaceAll(" ", "-");
    let anchor = slug;
    for (let i = 1; found.has(anchor); i++) anchor = `${slug}-${i}`;
    found.add(anchor);
  }
  return found;
}

/** The targets of links and images outside of code. */
export function links(markdown: string): Link[] {
  return splitCode(markdown).prose.flatMap((text, i) =>
    [...text.replace(/(`+)(?!`).*?\1/g, (code) => code.replace(/[()]/g, " ")).matchAll(LINK)].map(
      ([, inMarkdown, inHtml]) => ({ target: inMarkdown ?? inHtml ?? "", line: i + 1 }),
    ),
  );
}

/** `](target)` of a link or an image, and the `src` or `href` of an HTML tag. */
const LINK = /\]\(<?([^\s)>]+)>?(?:\s+"[^"]*")?\)|<(?:img|a)\s[^>]*?(?:src|href)="([^"]+)"/g;

export interface Table {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The tables outside of code: the line above the ruler, and the rows below it, trimmed. */
export function tables(markdown: string): Table[] {
  const found: { heads: string[]; rows: string[][] }[] = [];
  let isOpen = false;
  for (const text of splitCode(markdown).prose) {
    const isRow = text.startsWith("|");
    if (isRow && !isOpen) found.push({ heads: cells(text), rows: [] });
    else if (isRow && !/^[|\s:-]+$/.test(text)) found.at(-1)?.rows.push(cells(text));
    isOpen = isRow;
  }
  return found;
}

/** The cells of every row of a table but its head, trimmed. */
export const tableRows = (markdown: string): (readonly string[])[] =>
  tables(markdown).flatMap(({ rows }) => rows);

/** The texts between the bars of a row, trimmed. */
export const cells = (row: string): string[] =>
  row
    .replace(/^\||\|\s*$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
