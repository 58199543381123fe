import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { readText, splitCode } from "./markdown.ts";
import { matches } from "./sources.ts";

/** `src/runtime/line.ts`: `tellBusy`, `#reprieve` */
const PLACE = /`((?:src|lua)\/[\w/-]+\.(?:ts|lua))`(?:: (`#?\w+`(?:, `#?\w+`)*))?/g;

/**
 * Every race in a section "Races" of docs/protocol*.md says where it is prevented: by file and
 * method, both of which exist. For a part of a script that has no function, the file is enough.
 */
export function checkRaces(root: string): string[] {
  const pages = readdirSync(join(root, "docs")).filter((file) => /^protocol.*\.md$/.test(file));
  return pages.flatMap((page) =>
    racesOf(readText(root, `docs/${page}`)).flatMap(({ line, text }) =>
      problemsOf(root, text).map((problem) => `docs/${page}:${line}: ${problem}`),
    ),
  );
}

/** The items and rows below a heading "Races", with the lines at which they begin. */
function racesOf(markdown: string): { line: number; text: string }[] {
  const found: { line: number; text: string }[] = [];
  let isRaces = false;
  let isOpen = false;
  for (const [i, text] of splitCode(markdown).prose.entries()) {
    if (/^#+ /.test(text)) isRaces = /^#+ Races$/.test(text);
    const isRow = /^\|(?![\s:|-]+$)/.test(text);
    // A ruler follows: that was the table's head.
    if (/^\|[\s:|-]+$/.test(text) && isRaces) found.pop();
    else if (isRaces && (isRow || /^\d+\. /.test(text))) {
      found.push({ line: i + 1, text });
      isOpen = !isRow;
    } else if (text.trim() === "") isOpen = false;
    else if (isRaces && isOpen) {
      const last = found.at(-1);
      if (last) last.text += ` ${text.trim()}`;
    }
  }
  return found;
}

function problemsOf(root: string, race: string): string[] {
  const places = [...race.matchAll(PLACE)];
  if (places.length === 0) return ["a race names no file and method that prevent it"];
  return places.flatMap(([, file = "", names]) => {
    if (!existsSync(join(root, file))) return [`a race is prevented in ${file}, which is not there`];
    const known = declared(file, readText(root, file));
    const isPart = file.endsWith(".lua") && known.size === 0;
    if (names === undefined) return isPart ? [] : [`a race names no method of ${file}`];
    const missing = matches(names, /`(#?\w+)`/g).filter((name) => !known.has(name));
    return missing.map((name) => `a race is prevented by ${name} of ${file}, which is not there`);
  });
}

/** By the text: many races are prevented in one file. */
const read = new Map<string, Set<string>>();

/** The functions, methods, classes and fields of a module; the functions of a script. */
function declared(file: string, text: string): Set<string> {
  if (file.endsWith(".lua")) return new Set(matches(text, /^local function (\w+)/gm));
  const known = read.get(text);
  if (known) return known;
  const names = new Set<string>();
  read.set(text, names);
  const visit = (node: ts.Node): void => {
    if (isDeclaration(node) && node.name) names.add(node.name.getText());
    if (ts.isConstructorDeclaration(node)) names.add("constructor");
    if (!ts.isFunctionLike(node)) ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return names;
}

const isDeclaration = (node: ts.Node): node is ts.NamedDeclaration =>
  ts.isMethodDeclaration(node) ||
  ts.isFunctionDeclaration(node) ||
  ts.isClassDeclaration(node) ||
  ts.isAccessor(node) ||
  ts.isPropertyDeclaration(node) ||
  ts.isVariableDeclaration(node);
