import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A fenced block of code. */
export interface CodeBlock {
  /** What stands behind the opening fence, such as "ts". */
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

/** The paths of all Markdown files below a project folder, relative to it; hidden and generated folders are skipped. */
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

/** The headings outside of code, as they are written. */
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

/** The targets of inline links and images outside of code. */
export function links(markdown: string): Link[] {
  return splitCode(markdown).prose.flatMap((text, i) =>
    [...text.replace(/(`+)(?!`).*?\1/g, (code) => code.replace(/[()]/g, " ")).matchAll(LINK)].map(
      ([, target = ""]) => ({ target, line: i + 1 }),
    ),
  );
}

const LINK = /\]\(<?([^\s)>]+)>?(?:\s+"[^"]*")?\)/g;

/** The cells of every table row, trimmed; heads and rulers included. */
export function tableRows(markdown: string): string[][] {
  return splitCode(markdown)
    .prose.filter((text) => text.startsWith("|"))
    .map((text) =>
      text
        .replace(/^\||\|\s*$/g, "")
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}
