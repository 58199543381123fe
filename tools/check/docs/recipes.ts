import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readText, splitCode } from "./markdown.ts";

const PAGE = "docs/recipes.md";
const FOLDER = "test/recipes/programs";

/** A block of the page that shows a part of a program: ```ts recipe=shutdown.ts#service */
const RECIPE = /\brecipe=(\S+)#(\S+)/;

/** Does this block show a part of a program that is run on its own? */
export const isRecipe = (info: string): boolean => RECIPE.test(info);

/** What stands in each `// #region name` of the programs, by `file#name`, without the indentation that all its lines have. */
function regions(root: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of readdirSync(join(root, FOLDER), { recursive: true, encoding: "utf8" })) {
    if (!/\.[cm]?[jt]s$/.test(file)) continue;
    const text = readText(root, join(FOLDER, file));
    for (const [, name = "", code = ""] of text.matchAll(
      /^ *\/\/ #region (\S+)\n(.*?)\n *\/\/ #endregion$/gms,
    )) {
      const indents = code.split("\n").flatMap((line) => /^( *)\S/.exec(line)?.[1]?.length ?? []);
      const indent = new RegExp(`^ {${Math.min(...indents)}}`, "gm");
      found.set(`${file}#${name}`, code.replace(indent, ""));
    }
  }
  return found;
}

/** The page of recipes shows every region of the programs, as it is there. `npm run check:docs -- --fix` copies them. */
export function checkRecipes(root: string): string[] {
  const parts = regions(root);
  const shown = new Set<string>();
  const problems = splitCode(readText(root, PAGE)).blocks.flatMap(({ info, code, line }) => {
    const [, file = "", name = ""] = RECIPE.exec(info) ?? [];
    if (file === "") return [];
    shown.add(`${file}#${name}`);
    const part = parts.get(`${file}#${name}`);
    if (part === undefined) return [`${PAGE}:${line}: there is no region ${name} in ${FOLDER}/${file}`];
    return part === code
      ? []
      : [`${PAGE}:${line}: differs from ${FOLDER}/${file}: npm run check:docs -- --fix`];
  });
  const hidden = [...parts.keys()].filter((part) => !shown.has(part));
  return [...problems, ...hidden.map((part) => `${PAGE}: does not show ${part} of ${FOLDER}`)];
}

/** The page with the regions as the programs have them. */
export function embedRecipes(root: string): string {
  const parts = regions(root);
  return readText(root, PAGE).replace(
    /^(```\w+ recipe=(\S+)\n).*?^```$/gms,
    (whole, head: string, part: string) => {
      const code = parts.get(part);
      return code === undefined ? whole : `${head}${code}\n\`\`\``;
    },
  );
}
