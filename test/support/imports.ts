import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { join as joinPosix } from "node:path/posix";
import ts from "typescript";

/**
 * Each module's imports of other modules below a folder, types included; paths relative to `root`.
 */
export type Imports = ReadonlyMap<string, readonly string[]>;

const SKIPPED = /(^|\/)(node_modules|build|results)\//;

export function readImports(root: string, folder: string): Imports {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((file) => joinPosix(folder, file))
    .filter((file) => file.endsWith(".ts") && !SKIPPED.test(file));
  return new Map(files.map((file) => [file, importsOf(root, file)]));
}

const importsOf = memoized((file, text) =>
  ts
    .preProcessFile(text)
    .importedFiles.filter(({ fileName }) => fileName.startsWith("."))
    .map(({ fileName }) => joinPosix(file, "..", fileName)),
);

/** Reads each text once, however many copies of a file there are. */
export function memoized<T>(read: (file: string, text: string) => T): (root: string, file: string) => T {
  const known = new Map<string, T>();
  return (root, file) => {
    const text = readFileSync(join(root, file), "utf8");
    const key = `${file}\n${text}`;
    const result = known.get(key) ?? read(file, text);
    known.set(key, result);
    return result;
  };
}

/** The groups of modules that all reach each other. */
export function circles(imports: Imports): string[][] {
  const reached = new Map([...imports.keys()].map((file) => [file, reach(imports, file)]));
  const found = new Map<string, string[]>();
  for (const [file, others] of reached) {
    if (!others.has(file)) continue;
    const circle = [...others].filter((other) => reached.get(other)?.has(file)).sort();
    found.set(circle.join(), circle);
  }
  return [...found.values()];
}

function reach(imports: Imports, from: string): Set<string> {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    for (const next of imports.get(file) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      visit(next);
    }
  };
  visit(from);
  return seen;
}
