/**
 * npm run check:docs: holds the docs against the code, and all texts against the rule of language.ts. An optional argument
 * names another project folder.
 */
import { fileURLToPath } from "node:url";
import { checkErrors, checkReadme, checkScripts } from "./docs/code-checks.ts";
import { checkLanguage } from "./docs/language.ts";
import { checkLinks } from "./docs/links.ts";
import { markdownFiles } from "./docs/markdown.ts";
import { checkMeasured } from "./docs/measured.ts";
import { checkOptions } from "./docs/option-checks.ts";
import { checkRecipes } from "./docs/recipes.ts";

const root = process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url));

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
