/**
 * npm run check:docs: holds the docs against the code, and all texts against the rule of language.ts. An optional argument
 * names another project folder.
 */
import { fileURLToPath } from "node:url";
import { checkErrors, checkReadme, checkScripts } from "./code-checks.ts";
import { checkLanguage } from "./language.ts";
import { checkLinks } from "./links.ts";
import { markdownFiles } from "./markdown.ts";
import { checkMeasured } from "./measured.ts";
import { checkOptions } from "./option-checks.ts";
import { checkRecipes } from "./recipes.ts";

const root = process.argv[2] ?? fileURLToPath(new URL("../../..", import.meta.url));

const problems = [
  ...checkErrors(root),
  ...checkOptions(root),
  ...checkScripts(root),
  ...checkReadme(root),
  ...checkMeasured(root),
  ...checkRecipes(root),
  ...checkLinks(root),
  ...checkLanguage(root),
];

if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stderr.write(`\nThe docs do not fit the code; problems: ${problems.length}.\n`);
  process.exitCode = 1;
} else process.stdout.write(`${markdownFiles(root).length} Markdown files fit the code.\n`);
