import ts from "typescript";
import { type Comment, scriptComments } from "../comments.ts";
import { type Limits, wrapProse } from "./prose.ts";

/** Columns of a comment that is wrapped, and of any line. */
const WIDTH = 100;
const MOST = 110;

/** The code before a comment continues from the previous line: nothing may come between the two. */
const GOES_ON = /^\s*[)}\].?:|&]/;

/**
 * A source with its long comments wrapped. Its code stays the same.
 *
 * @throws Error if it would not
 */
export function wrapSource(path: string, source: string): string {
  let wrapped = "";
  let copied = 0;
  for (const { pos, end, text } of replacements(path, source)) {
    wrapped += source.slice(copied, pos) + text;
    copied = end;
  }
  wrapped += source.slice(copied);
  if (wrapped !== source && codeOf(path, wrapped) !== codeOf(path, source))
    throw new Error(`${path}: wrapping its comments would change its code`);
  return wrapped;
}

/** The lines that are too long, from 1, except those that cannot be broken. */
export function longLines(path: string, source: string): number[] {
  const commented = commentedLines(path, source);
  return source.split("\n").flatMap((line, i) => {
    if (line.length <= MOST) return [];
    // Biome has broken all code that can be broken, and a macro of Promela is one line.
    if (!commented.has(i) && (isScript(path) || path.endsWith(".pml"))) return [];
    return isUnbreakable(line) ? [] : [i + 1];
  });
}

interface Replacement {
  readonly pos: number;
  readonly end: number;
  readonly text: string;
}

const isScript = (path: string): boolean => /\.[cm]?[jt]s$/.test(path);
/** For lines that are shorter by the text before them. */
const limits = (shorter: number, path: string): Limits => ({
  width: WIDTH - shorter,
  most: MOST - shorter,
  hasColumns: /\.(lua|pml)$/.test(path),
});

/** One long word, such as an address; a row of a table; a tool's directive. */
function isUnbreakable(line: string): boolean {
  const text = line.trim().replace(/^(\/\/|\/\*\*?|\*|--)\s*/, "");
  return /^(\||biome-ignore|@ts-)/.test(text) || text.split(/\s+/).some((word) => word.length > MOST / 2);
}

function commentsOf(path: string, source: string): Comment[] {
  if (isScript(path)) {
    const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
    return scriptComments(file).sort((a, b) => a.pos - b.pos);
  }
  const comment = path.endsWith(".lua")
    ? /(?<=^[ \t]*)--.*$/gm
    : /(?<=^[ \t]*)(?:\/\/.*$|\/\*[\s\S]*?\*\/)/gm;
  return [...source.matchAll(comment)].map(({ 0: text, index }) => ({
    pos: index,
    end: index + text.length,
    isBlock: text.startsWith("/*"),
  }));
}

function commentedLines(path: string, source: string): Set<number> {
  const lines = new Set<number>();
  for (const { pos, end } of commentsOf(path, source)) {
    const first = source.slice(0, pos).split("\n").length - 1;
    const count = source.slice(pos, end).split("\n").length;
    for (let i = 0; i < count; i++) lines.add(first + i);
  }
  return lines;
}

function* replacements(path: string, source: string): Generator<Replacement> {
  const startOf = (pos: number): number => source.lastIndexOf("\n", pos - 1) + 1;
  const isAtEnd = (pos: number): boolean => pos === source.length || source[pos] === "\n";
  let run: Comment[] = [];
  const close = function* (): Generator<Replacement> {
    const [{ pos } = { pos: 0 }] = run;
    if (run.length > 0) {
      const indent = source.slice(startOf(pos), pos);
      const end = run.at(-1)?.end ?? pos;
      yield { pos, end, text: wrapRun(source.slice(pos, end), indent, path) };
    }
    run = [];
  };
  for (const comment of commentsOf(path, source)) {
    const { pos, end, isBlock } = comment;
    const before = source.slice(startOf(pos), pos);
    const isAlone = before.trim() === "" && isAtEnd(end);
    const last = run.at(-1);
    const follows = last && source.slice(last.end, pos) === `\n${before}`;
    if (!isBlock && isAlone && (run.length === 0 || follows)) {
      run.push(comment);
      continue;
    }
    yield* close();
    const text = source.slice(pos, end);
    if (isAlone && !isBlock) run = [comment];
    else if (isAlone) yield { pos, end, text: wrapBlock(text, before, path) };
    else if (!isBlock && end - startOf(pos) > MOST && !GOES_ON.test(before)) {
      const indent = /^\s*/.exec(before)?.[0] ?? "";
      const above = `${wrapRun(text, indent, path)}\n`;
      yield { pos: startOf(pos), end, text: `${indent}${above}${before.trimEnd()}` };
    }
  }
  yield* close();
}

/** Comments to the end of the line, one below the other. */
function wrapRun(run: string, indent: string, path: string): string {
  const mark = run.slice(0, 2);
  const lines = run.split("\n").map((line) => line.trimStart().slice(2));
  // Each marker is followed by a blank, otherwise the lines are no prose.
  if (lines.some((line) => !/^( |$)/.test(line))) return run;
  const prose = lines.map((line) => line.slice(1));
  const wrapped = wrapProse(prose, limits(indent.length + 3, path));
  return wrapped.map((line) => `${mark} ${line}`.trimEnd()).join(`\n${indent}`);
}

function wrapBlock(comment: string, indent: string, path: string): string {
  const [, mark = "", inner = ""] = /^(\/\*\*?)([\s\S]*)\*\/$/.exec(comment) ?? [];
  const lines = inner.split("\n").map((line, i) => (i === 0 ? line : line.replace(/^\s*\*?/, "")));
  const [first = "", ...rest] = lines;
  const isOpened = first.trim() === "" && rest.length > 0;
  if ([first, ...rest].some((line) => !/^( |$)/.test(line))) return comment;
  const prose = (isOpened ? rest : lines).map((line) => line.slice(1).trimEnd());
  if (prose.at(-1) === "") prose.pop();
  if (!`${indent}${comment}`.split("\n").some((line) => line.length > MOST)) return comment;
  const all = limits(indent.length + 3, path);
  const wrapped = wrapProse(prose, isOpened ? all : { ...all, most: all.width });
  if (mark === "/*") return `/* ${wrapped.join(`\n${indent} * `)} */`.replace(/ +$/gm, "");
  return [mark, ...wrapped.map((line) => ` * ${line}`.trimEnd()), " */"].join(`\n${indent}`);
}

/** A source without its comments. */
function codeOf(path: string, source: string): string {
  if (!isScript(path)) {
    const comment = path.endsWith(".lua") ? /^[ \t]*--.*$/gm : /^[ \t]*(?:\/\/.*$|\/\*[\s\S]*?\*\/)/gm;
    return source.replace(comment, "").replace(/^\s*\n/gm, "");
  }
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, false, ts.ScriptKind.TS);
  return ts.createPrinter({ removeComments: true }).printFile(file);
}
