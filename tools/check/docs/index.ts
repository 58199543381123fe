/**
 * npm run check:docs: holds the docs against the code, and all texts against the rule of language.ts.
 * `npm run check:docs -- --fix` first copies the marked parts of the programs in test/recipes and
 * test/interop into docs/recipes.md and docs/migrating.md, and the program's help into
 * docs/command-line.md.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkErrors, checkReadme, checkScripts } from "./code-checks.ts";
import { checkCommandLine, embedHelp } from "./command-line.ts";
import { checkLanguage } from "./language.ts";
import { checkLinks } from "./links.ts";
import { markdownFiles } from "./markdown.ts";
import { checkMeasured } from "./measured.ts";
import { checkNames } from "./names.ts";
import { checkOptions } from "./option-checks.ts";
import { checkRecipes, embedRecipes, PAGES } from "./recipes.ts";
import { checkTables } from "./tables.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
if (process.argv.includes("--fix")) {
  for (const page of PAGES) writeFileSync(join(root, page), embedRecipes(root, page));
  writeFileSync(join(root, "docs/command-line.md"), embedHelp(root));
}

const problems = [
  ...checkErrors(root),
  ...checkOptions(root),
  ...checkScripts(root),
  ...checkReadme(root),
  ...checkNames(root),
  ...checkMeasured(root),
  ...checkRecipes(root),
  ...checkCommandLine(root),
  ...checkLinks(root),
  ...checkTables(root),
  ...checkLanguage(root),
];

if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stderr.write(`\nThe docs do not fit the code; problems: ${problems.length}.\n`);
  process.exitCode = 1;
} else process.stdout.write(`${markdownFiles(root).length} Markdown files fit the code.\n`);
