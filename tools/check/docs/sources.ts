import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The first group of every match. */
export const matches = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found = ""]) => found);

/** The paths of all modules below src/. */
export const sources = (root: string): string[] =>
  readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `src/${file}`);

/** The strings of `export type Name = "a" | "b";`. */
export function stringsOfType(source: string, name: string): string[] {
  const body = new RegExp(`^export type ${name} =([^;]*);`, "m").exec(source)?.[1] ?? "";
  return matches(body, /"(\w+)"/g);
}

/** The members of `export interface Name { … }` at its first level. */
export function members(source: string, name: string): string[] {
  const body = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, "ms").exec(source)?.[1] ?? "";
  return matches(body, /^ {2}(\w+)\??:/gm);
}
