import { readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { scriptComments } from "../comments.ts";
import { splitCode } from "./markdown.ts";

/**
 * A paragraph, a list item, a table cell, a comment or a message: a text that is read in one piece.
 */
export interface Passage {
  /** With its line breaks, and with a placeholder for every piece of code. */
  readonly text: string;
  /** The line of its file where it begins, from 1. */
  readonly line: number;
}

/** Generated, or not ours. */
const SKIPPED = new Set(["node_modules", "dist", "build", "coverage", "results", "target"]);

/** The files below a project folder whose text people read, relative to it. */
export function readableFiles(root: string, folder = ""): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith(".") || SKIPPED.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return readableFiles(root, path);
    return /\.(md|ts|mjs|cjs|js|lua|pml|java)$/.test(path) && !path.endsWith(".generated.ts") ? [path] : [];
  });
}

/**
 * The text that people read in a file: all of Markdown; elsewhere comments, and strings of several
 * words.
 */
export function passages(path: string, source: string): Passage[] {
  if (path.endsWith(".md")) return paragraphs(splitCode(source).prose, 1);
  if (path.endsWith(".lua")) return lineComments(source, "--");
  if (/\.(pml|java)$/.test(path)) return [...lineComments(source, "//"), ...blockComments(source)];
  return scriptPassages(source);
}

/** Splits at empty lines, headings, list items, table cells and the tags of a docstring. */
function paragraphs(lines: readonly string[], line: number): Passage[] {
  const found: { lines: string[]; line: number }[] = [];
  let open: string[] | null = null;
  for (const [i, text] of lines.entries()) {
    const [, mark = "", rest = ""] = /^\s*([-*+] |\d+\. |#+ |> |@\w+ ?|\|)?(.*)$/.exec(text) ?? [];
    if (mark === "|") found.push(...rest.split("|").map((cell) => ({ lines: [cell], line: line + i })));
    else if (open !== null && mark === "" && rest.trim() !== "") open.push(rest);
    else {
      const lines = [rest];
      found.push({ lines, line: line + i });
      open = lines;
    }
    if (mark === "|" || mark.startsWith("#") || rest.trim() === "") open = null;
  }
  return found
    .map(({ lines, line }) => ({ text: withoutCode(lines.join("\n")), line }))
    .filter(({ text }) => text.trim() !== "");
}

const withoutCode = (text: string): string =>
  text.replace(/(`+)(?!`)[^`]*?\1/g, (code) => `code${code.replace(/[^\n]/g, "")}`);

/** Line comments; those on consecutive lines are one. */
class Lines {
  readonly #blocks: { lines: string[]; line: number; last: number }[] = [];

  /** `isAlone`: no code comes before it on its line. */
  add(text: string, line: number, isAlone: boolean): void {
    const block = this.#blocks.at(-1);
    if (block && block.last === line - 1 && isAlone) {
      block.lines.push(text);
      block.last = line;
    } else this.#blocks.push({ lines: [text], line, last: line });
  }

  passages(): Passage[] {
    return this.#blocks.flatMap(({ lines, line }) => paragraphs(lines, line));
  }
}

function lineComments(source: string, mark: "--" | "//"): Passage[] {
  const comment = new RegExp(`^(\\s*|.*\\s)${mark}(?:\\s(.*)|)$`);
  const found = new Lines();
  for (const [i, text] of source.split("\n").entries()) {
    const [, before, words = ""] = comment.exec(text) ?? [];
    if (before !== undefined) found.add(words, i + 1, before.trim() === "");
  }
  return found.passages();
}

function blockComments(source: string): Passage[] {
  return [...source.matchAll(/\/\*.*?\*\//gs)].flatMap(({ 0: text, index }) =>
    blockComment(text, source.slice(0, index).split("\n").length),
  );
}

/** Without its stars, and without the code of its examples. */
function blockComment(comment: string, line: number): Passage[] {
  const text = comment.slice(2, -2).replace(/^[^\S\n]*\*+ ?/gm, "");
  return paragraphs(splitCode(text).prose, line);
}

/** TypeScript or JavaScript. */
function scriptPassages(source: string): Passage[] {
  const file = ts.createSourceFile("file.ts", source, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line + 1;
  const found: Passage[] = [];
  const lines = new Lines();

  for (const { pos, end, isBlock } of scriptComments(file)) {
    const text = source.slice(pos, end);
    if (isBlock) found.push(...blockComment(text, lineOf(pos)));
    else {
      const isAlone = source.slice(source.lastIndexOf("\n", pos - 1) + 1, pos).trim() === "";
      lines.add(text.slice(2), lineOf(pos), isAlone);
    }
  }
  const addString = (text: string, node: ts.Node): void => {
    if (/\s/.test(text)) found.push({ text: withoutCode(text), line: lineOf(node.getStart()) });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) addString(node.text, node);
    else if (ts.isTemplateExpression(node))
      addString(
        [node.head, ...node.templateSpans.map(({ literal }) => literal)].map(({ text }) => text).join("X"),
        node,
      );
    for (const child of node.getChildren(file)) visit(child);
  };
  visit(file);
  return [...found, ...lines.passages()].sort((a, b) => a.line - b.line);
}
