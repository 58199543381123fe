import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, buildSync, type OutputFile } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Below the root, because the programs import packages by their names. */
const FOLDER = `${ROOT}node_modules/.cache/holdfast-programs`;
const made = new Map<string, string>();

/**
 * The path of a program of the tests, bundled to plain JavaScript: a process that compiles its
 * sources itself takes four times the CPU time to start, and the tests start hundreds.
 *
 * @param program the file, or the text of a module whose imports are relative to the root of the repository
 * @param looksForPackages it has the packages that are installed where it lies; false: those of this
 *   repository
 */
export function compiled(program: URL | string, looksForPackages = false): string {
  const key = `${looksForPackages} ${program}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  const source: BuildOptions =
    program instanceof URL
      ? { entryPoints: [fileURLToPath(program)] }
      : { stdin: { contents: program, resolveDir: ROOT, loader: "ts" } };
  const name = program instanceof URL ? basename(program.pathname, ".ts") : "text";
  const alias = looksForPackages ? {} : { ioredis: ioredis() };
  const path = write(name, { ...source, alias, packages: "external" });
  made.set(key, path);
  return path;
}

let library: string | undefined;

/** ioredis in one file: as a hundred, they are a third of what the start of a process costs. */
function ioredis(): string {
  if (library !== undefined) return library;
  const names = Object.keys(createRequire(import.meta.url)("ioredis"));
  const contents = `import * as all from "ioredis"; export const { ${names.join(", ")} } = all;`;
  // It requires modules of Node.
  const banner =
    'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
  library = write("ioredis", { stdin: { contents, resolveDir: ROOT }, banner: { js: banner } });
  return library;
}

/** Bundles it to a file with this at the start of its name. Returns the file's path. */
function write(name: string, options: BuildOptions): string {
  const [built] = buildSync({
    ...options,
    absWorkingDir: ROOT,
    bundle: true,
    external: [`${FOLDER}/*`],
    platform: "node",
    format: "esm",
    target: "node20",
    write: false,
    outdir: FOLDER,
    logLevel: "silent", // it throws, with the message
  }).outputFiles as OutputFile[];
  if (!built) throw new Error(`esbuild made nothing of ${name}`);
  const path = `${FOLDER}/${name}-${createHash("sha256").update(built.contents).digest("hex").slice(0, 16)}.mjs`;
  mkdirSync(FOLDER, { recursive: true });
  // Written to another path first: other test files, which make the same file at the same time,
  // never run half of it.
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, built.contents);
  renameSync(aside, path);
  return path;
}
