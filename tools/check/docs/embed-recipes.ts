/** npm run embed:recipes: copies the marked parts of the programs in test/recipes into docs/recipes.md. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { embedRecipes } from "./recipes.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
writeFileSync(join(root, "docs/recipes.md"), embedRecipes(root));
