import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { OtherCommit } from "./crew/players.ts";

// From build/benchmarks.
const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Compiles Holdfast as a commit has it, file by file as the present one, in a git worktree outside
 * of the repository.
 *
 * @throws Error when there is no such commit, or when it does not compile
 */
export function buildCommit(commit: string): OtherCommit & { remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-against-"));
  const tree = join(folder, "tree");
  const git = (...args: string[]) => execFileSync("git", ["-C", REPOSITORY, ...args], { stdio: "pipe" });
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: tree, stdio: "pipe" });
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
    git("worktree", "prune");
  };
  try {
    git("worktree", "add", "--detach", tree, commit);
    symlinkSync(join(REPOSITORY, "node_modules"), join(tree, "node_modules"));
    run("npm", "run", "-s", "embed");
    const compiler = "node_modules/typescript/bin/tsc";
    run(
      process.execPath,
      compiler,
      "-p",
      "tsconfig.build.json",
      "--emitDeclarationOnly",
      "false",
      "--declaration",
      "false",
    );
    return { commit, library: pathToFileURL(join(tree, "dist/index.js")).href, remove };
  } catch (error) {
    remove();
    throw error;
  }
}
