/**
 * npm run check:docs: compares the docs with the code, and all texts with the rule of language.ts.
 * Hints about words do not fail it.
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
import { checkRaces } from "./races.ts";
import { checkRecipes, embedRecipes, PAGES } from "./recipes.ts";
import { checkTables } from "./tables.ts";
import { wordHints } from "./words.ts";

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
  ...checkRaces(root),
  ...checkRecipes(root),
  ...checkCommandLine(root),
  ...checkLinks(root),
  ...checkTables(root),
  ...checkLanguage(root),
];

for (const hint of wordHints(root)) process.stdout.write(`hint: ${hint}\n`);
if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stderr.write(`\nThe docs do not fit the code; problems: ${problems.length}.\n`);
  process.exitCode = 1;
} else process.stdout.write(`${markdownFiles(root).length} Markdown files fit the code.\n`);
