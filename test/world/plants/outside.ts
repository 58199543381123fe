import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { copyWith, ROOT } from "./copy.ts";
import type { Plant } from "./plant.ts";

/** What tests outside of the world read, too. */
const PARTS = [
  "src",
  "lua",
  "tools",
  "test",
  "docs",
  "page",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
];

/** Runs the plant's own test, with its bug or without. Returns whether it passes. */
export async function passes({ test, ...plant }: Plant, isPlanted: boolean): Promise<boolean> {
  if (!test) throw new Error(`"${plant.name}" has no test outside of the world`);
  const { file, title, project } = test;
  const text = await readFile(join(ROOT, file), "utf8");
  if (!text.includes(title)) throw new Error(`${file} has no test "${title}"`);
  await using copy = await copyWith(isPlanted ? plant : null, PARTS);
  const args = ["node_modules/vitest/vitest.mjs", "run", "--project", project, file, "-t", title];
  const env = { ...process.env, VITEST: undefined, VITEST_POOL_ID: undefined, VITEST_WORKER_ID: undefined };
  return await new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: copy.root, env, maxBuffer: 2 ** 26 }, (error) => resolve(!error));
  });
}
