import { readdirSync } from "node:fs";
import { join } from "node:path";
import { headings, readText, tableRows } from "./markdown.ts";
import { matches, sources, stringsOfType } from "./sources.ts";

/** Longer texts go to a page of docs/. */
const README_LINES = 200;

const COMMANDS = ["npm ci && npm run demo", "npm ci && npm test"];

/**
 * docs/errors.md explains every error class and code of src/api/errors.ts, every loss reason of
 * src/api/wording.ts, and every warning code.
 */
export function checkErrors(root: string): string[] {
  const source = readText(root, "src/api/errors.ts");
  const page = readText(root, "docs/errors.md");
  const words = new Set(headings(page).flatMap((heading) => heading.split(/[^\w]+/)));
  const classes = matches(source, /^export class (\w+)/gm);
  const codes = stringsOfType(source, "LockErrorCode");
  const warnings = sources(root).flatMap((path) =>
    matches(readText(root, path), /code: "([A-Z_]+)"/g).filter((code) => !codes.includes(code)),
  );
  const rows = new Set(tableRows(page).map(([first]) => first));
  return [
    ...unless(classes.length > 0, "src/api/errors.ts: found no exported class"),
    ...unless(codes.length > 0, "src/api/errors.ts: found no LockErrorCode"),
    ...[...classes, ...codes, ...warnings].flatMap((word) =>
      unless(words.has(word), `docs/errors.md: no heading names ${word}`),
    ),
    ...stringsOfType(readText(root, "src/api/wording.ts"), "LossReason").flatMap((reason) =>
      unless(
        rows.has(`\`${reason}\``),
        `docs/errors.md: no row of a table tells of the loss reason ${reason}`,
      ),
    ),
  ];
}

/**
 * One of the pages docs/protocol*.md names every script by its path, and no page names any other.
 */
export function checkScripts(root: string): string[] {
  const pages = readdirSync(join(root, "docs")).filter((file) => /^protocol.*\.md$/.test(file));
  const page = pages.map((file) => readText(root, `docs/${file}`)).join("\n");
  const scripts = readdirSync(join(root, "lua"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".lua"))
    .map((file) => `lua/${file}`);
  return [
    ...unless(scripts.length > 0, "lua/: found no script"),
    ...scripts.flatMap((path) => unless(page.includes(path), `docs/protocol*.md: no page mentions ${path}`)),
    ...matches(page, /(lua\/[\w/-]+\.lua)/g).flatMap((path) =>
      unless(scripts.includes(path), `docs/protocol*.md: a page mentions ${path}, which is not there`),
    ),
  ];
}

/** The README says how to see the demo and the tests on a fresh machine, and stays short. */
export function checkReadme(root: string): string[] {
  const page = readText(root, "README.md");
  const lines = page.trimEnd().split("\n").length;
  return [
    ...COMMANDS.flatMap((command) =>
      unless(page.includes(command), `README.md: lacks the command ${command}`),
    ),
    ...unless(lines <= README_LINES, `README.md: has ${lines} lines, more than ${README_LINES}`),
  ];
}

const unless = (isFine: boolean, problem: string): string[] => (isFine ? [] : [problem]);
