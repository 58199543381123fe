import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { markdownFiles, readText } from "./markdown.ts";
import { matches } from "./sources.ts";

/**
 * What a page may name that is there only as long as nobody moves it: the package's scripts, and
 * the tests.
 */
export function checkNames(root: string): string[] {
  const { scripts } = JSON.parse(readText(root, "package.json")) as { scripts: Record<string, string> };
  const folders = readdirSync(join(root, "test")).join("|");
  // "lock/server-clock.faults" or, with the folder of all tests before it, "test/lock/token-clock.test.ts".
  const test = new RegExp(`\`((?:test/)?(?:${folders})(?:/[\\w.*-]+)+)\``, "g");
  return [...markdownFiles(root), ".ci/run"].flatMap((page) => {
    const text = readText(root, page);
    const commands = matches(text, /\bnpm run (?:-s )?([\w:]+)/g).filter((name) => !(name in scripts));
    const tests = matches(text, test).filter((path) => !isThere(root, path));
    return [
      ...commands.map((name) => `${page}: npm run ${name} is not there`),
      ...tests.map((path) => `${page}: there is no test ${path}`),
    ];
  });
}

function isThere(root: string, path: string): boolean {
  const from = path.startsWith("test/") ? path : `test/${path}`;
  return [from, `${from}.test.ts`, `${from}.ts`].some((file) => existsSync(join(root, file)));
}
