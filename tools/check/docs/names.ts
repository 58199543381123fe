import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { anchors, links, markdownFiles, readText, tableRows, tables } from "./markdown.ts";
import { matches } from "./sources.ts";

/**
 * Names that a page may use and that can go stale: the package's scripts, the tests, and source
 * files, which the models in proof/ name too. And each section of promises names its tests.
 */
export function checkNames(root: string): string[] {
  const { scripts } = JSON.parse(readText(root, "package.json")) as { scripts: Record<string, string> };
  const folders = readdirSync(join(root, "test")).join("|");
  // "lock/lost-replies.faults" or, with the folder of all tests before it, "test/lock/replicas.test.ts".
  const test = new RegExp(`\`((?:test/)?(?:${folders})(?:/[\\w.*-]+)+)\``, "g");
  const bare = new Set(sourceFiles(root).map((path) => basename(path)));
  const models = listed(root, "proof").filter((path) => path.endsWith(".pml"));
  const stale = [...markdownFiles(root), ...models, ".ci/run"].flatMap((page) => {
    const text = readText(root, page);
    const commands = matches(text, /\bnpm run (?:-s )?([\w:]+)/g).filter((name) => !(name in scripts));
    const tests = matches(text, test).filter((path) => !isThere(root, path));
    const rows = page === FAULTS ? tableRows(text) : [];
    const faults = rows.flatMap(testsOf).filter((path) => !isThere(root, path));
    const paths = matches(text, SOURCE).filter((path) => !existsSync(join(root, path)));
    const files = FOR_MAINTAINERS.test(page) ? matches(text, BARE).filter((file) => !bare.has(file)) : [];
    return [
      ...commands.map((name) => `${page}: npm run ${name} is not there`),
      ...[...tests, ...faults].map((path) => `${page}: there is no test ${path}`),
      ...[...paths, ...files].map((path) => `${page}: there is no file ${path}`),
    ];
  });
  return [...stale, ...untested(root)];
}

/** A path of the project. The files that npm run embed writes are not committed. */
const SOURCE = /(?<![\w./-])((?:src|lua|proof|tools|page)\/(?:[\w-]+\/)*[\w-]+\.(?:ts|mjs|lua|pml))\b/g;
/** Pages that name source files without their folder, and such a name. */
const FOR_MAINTAINERS = /^docs\/(maintaining|protocol[\w-]*|decisions\/.*)\.md$/;
const BARE = /`([\w-]+\.(?:ts|lua))`/g;

const sourceFiles = (root: string): string[] =>
  ["src", "lua", "test", "tools"].flatMap((folder) => listed(root, folder));

function listed(root: string, folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  // test/recipes has packages of its own once its programs have run.
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("node_modules/"))
    .map((path) => `${folder}/${path}`);
}

/** Each row of its tables ends with tests, of any folder. */
const FAULTS = "docs/protocol-faults.md";

const testsOf = (row: readonly string[]): string[] =>
  matches(row.at(-1) ?? "", /`([^`]+)`/g).filter((code) => code.includes("/"));

/** Pages whose sections have a row in the table of FAULTS that begins with "section". */
const PROMISES = ["guarantees.md", "several-locks.md", "scopes.md", "errors.md"];
/** Headings above no promise, or above one of other software. */
const NO_PROMISE = ["guarantees.md#guarantees", "guarantees.md#servers-that-do-not-forget"];

/** The sections of these pages without such a row, or whose row names no test. */
function untested(root: string): string[] {
  const index = tables(readText(root, FAULTS)).find(({ heads }) => heads[0] === "section");
  const rows = (index?.rows ?? []).filter((row) => testsOf(row).length > 0);
  const tested = rows.flatMap(([section = ""]) => links(section).map(({ target }) => target));
  return PROMISES.flatMap((page) => [...anchors(readText(root, `docs/${page}`))].map((id) => `${page}#${id}`))
    .filter((section) => !tested.includes(section) && !NO_PROMISE.includes(section))
    .map((section) => `${FAULTS}: no row "Which test" names a test of ${section}`);
}

function isThere(root: string, path: string): boolean {
  const from = path.startsWith("test/") ? path : `test/${path}`;
  return [from, `${from}.test.ts`, `${from}.ts`].some((file) => existsSync(join(root, file)));
}
