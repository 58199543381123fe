import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Below the root, because the programs import packages by their names. */
const FOLDER = `${ROOT}node_modules/.cache/holdfast-programs`;
const made = new Map<string, string>();

/**
 * The path of a program of the tests, bundled to plain JavaScript: a process that compiles its
 * sources itself takes four times the CPU time to start, and the tests start hundreds.
 *
 * @param program the file, or the text of a module whose imports are relative to the root of the repository
 */
export function compiled(program: URL | string): string {
  const key = `${program}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  const [built] = buildSync({
    ...(program instanceof URL
      ? { entryPoints: [fileURLToPath(program)] }
      : { stdin: { contents: program, resolveDir: ROOT, loader: "ts" } }),
    absWorkingDir: ROOT,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20",
    write: false,
    outdir: FOLDER,
    logLevel: "silent", // it throws, with the message
  }).outputFiles;
  if (!built) throw new Error(`esbuild made nothing of ${key}`);
  const name = program instanceof URL ? basename(program.pathname, ".ts") : "text";
  const path = `${FOLDER}/${name}-${createHash("sha256").update(built.contents).digest("hex").slice(0, 16)}.mjs`;
  mkdirSync(FOLDER, { recursive: true });
  // Written to another path first: other test files, which make the same file at the same time,
  // never run half of it.
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, built.contents);
  renameSync(aside, path);
  made.set(key, path);
  return path;
}
