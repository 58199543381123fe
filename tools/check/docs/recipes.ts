import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readText, splitCode } from "./markdown.ts";

/** The pages that show parts of programs. */
export const PAGES: readonly string[] = ["docs/recipes.md", "docs/migrating.md"];

/** The folders of these programs. No two files in them have the same name. */
const FOLDERS: readonly string[] = [
  "test/recipes/programs",
  "test/interop/redisson/src/main/java/holdfast/migrating",
];

/** A block of a page that shows a part of a program: ```ts recipe=shutdown.ts#service */
const RECIPE = /\brecipe=(\S+)#(\S+)/;

/** Does this block show a part of a program that runs on its own? */
export const isRecipe = (info: string): boolean => RECIPE.test(info);

interface Region {
  /** In its program. */
  readonly path: string;
  readonly code: string;
}

/**
 * The text of each `// #region name` of the programs, by `file#name`, without the common
 * indentation of its lines.
 */
function regions(root: string): Map<string, Region> {
  const found = new Map<string, Region>();
  for (const folder of FOLDERS) {
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      if (!/\.([cm]?[jt]s|java)$/.test(file)) continue;
      const path = join(folder, file);
      for (const [, name = "", code = ""] of readText(root, path).matchAll(
        /^ *\/\/ #region (\S+)\n(.*?)\n *\/\/ #endregion$/gms,
      )) {
        const indents = code.split("\n").flatMap((line) => /^( *)\S/.exec(line)?.[1]?.length ?? []);
        const indent = new RegExp(`^ {${Math.min(...indents)}}`, "gm");
        found.set(`${file}#${name}`, { path, code: code.replace(indent, "") });
      }
    }
  }
  return found;
}

/**
 * The pages show every region of the programs, unchanged. `npm run check:docs -- --fix` copies
 * them.
 */
export function checkRecipes(root: string): string[] {
  const parts = regions(root);
  const shown = new Set<string>();
  const problems = PAGES.flatMap((page) =>
    splitCode(readText(root, page)).blocks.flatMap(({ info, code, line }) => {
      const [, file = "", name = ""] = RECIPE.exec(info) ?? [];
      if (file === "") return [];
      shown.add(`${file}#${name}`);
      const part = parts.get(`${file}#${name}`);
      if (part === undefined) return [`${page}:${line}: no program ${file} has a region ${name}`];
      return part.code === code
        ? []
        : [`${page}:${line}: differs from ${part.path}: npm run check:docs -- --fix`];
    }),
  );
  const hidden = [...parts].filter(([part]) => !shown.has(part));
  return [
    ...problems,
    ...hidden.map(([part, { path }]) => `no page shows the region ${part.split("#")[1]} of ${path}`),
  ];
}

/** A page with the regions copied from the programs. */
export function embedRecipes(root: string, page: string): string {
  const parts = regions(root);
  return readText(root, page).replace(
    /^(```\w+ recipe=(\S+)\n).*?^```$/gms,
    (whole, head: string, part: string) => {
      const region = parts.get(part);
      return region === undefined ? whole : `${head}${region.code}\n\`\`\``;
    },
  );
}
