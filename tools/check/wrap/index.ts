/**
 * npm run check:wrap: no line of the sources is too long. `npm run check:wrap -- --fix` wraps their
 * comments; with `--dry-run` it only reports what that would do. Paths after it replace the default
 * of all sources.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readableFiles } from "../docs/prose.ts";
import { longLines, wrapSource } from "./sources.ts";

const FOLDERS = ["src", "lua", "test", "tools", "benchmarks", "demo", "proof", "page"];

const root = fileURLToPath(new URL("../../..", import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { fix: { type: "boolean" }, "dry-run": { type: "boolean" } },
});
const paths = positionals.length > 0 ? positionals : FOLDERS.flatMap((folder) => readableFiles(root, folder));

const problems: string[] = [];
let changed = 0;
for (const path of paths.filter((path) => !path.endsWith(".md"))) {
  let source = readFileSync(join(root, path), "utf8");
  if (values.fix || values["dry-run"]) {
    const wrapped = wrapSource(path, source);
    if (wrapped !== source) changed++;
    if (wrapped !== source && values.fix) writeFileSync(join(root, path), wrapped);
    source = wrapped;
  }
  for (const line of longLines(path, source)) problems.push(`${path}:${line}`);
}

if (changed > 0) process.stdout.write(`Files with wrapped comments: ${changed}.\n`);
if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`${problem}: the line is too long\n`);
  process.exitCode = 1;
}
