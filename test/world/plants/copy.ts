import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { cp, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { endWithProcess } from "../../../tools/redis/reaper.ts";
import type { Plant } from "./plant.ts";

export const ROOT = resolve(import.meta.dirname, "../../..");
/** What a run of the world reads. */
const PARTS = ["src", "lua", "tools/build", "test/support", "test/world", "package.json", "tsconfig.json"];

/** A folder with a copy of this tree. */
export interface Copy extends AsyncDisposable {
  readonly root: string;
}

/**
 * Copies that nobody uses, by what they have: until this process ends. What was compiled of one is
 * good for the next plant.
 */
const idle = new Map<readonly string[], string[]>();

/** A copy of the tree with this bug; null: with none. @throws Error if the plant does not fit */
export async function copyWith(plant: Plant | null, parts = PARTS): Promise<Copy> {
  const those = idle.get(parts) ?? [];
  idle.set(parts, those);
  const root = those.pop() ?? (await copy(parts));
  if (plant) await put(plant, root);
  return {
    root,
    async [Symbol.asyncDispose]() {
      if (plant) await take(isScript(plant) ? ["src", plant.file] : [plant.file], root);
      those.push(root);
    },
  };
}

async function copy(parts: readonly string[]): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "holdfast-plant-"));
  endWithProcess(() => rmSync(root, { recursive: true, force: true }));
  await take(parts, root);
  await symlink(join(ROOT, "node_modules"), join(root, "node_modules"));
  return root;
}

async function take(parts: readonly string[], root: string): Promise<void> {
  await Promise.all(parts.map((part) => cp(join(ROOT, part), join(root, part), { recursive: true })));
}

/** Modules of src have its text. */
const isScript = ({ file }: Plant): boolean => file.startsWith("lua/");

async function put(plant: Plant, root: string): Promise<void> {
  await writeFile(join(root, plant.file), await textWith(plant, root));
  if (isScript(plant))
    await promisify(execFile)(process.execPath, ["tools/build/embed-lua.mjs"], { cwd: root });
}

/** The file with this bug. @throws Error if the plant does not fit */
export async function textWith({ name, file, replaces, by }: Plant, root: string): Promise<string> {
  const text = await readFile(join(root, file), "utf8");
  const times = text.split(replaces).length - 1;
  if (times !== 1)
    throw new Error(
      `The plant "${name}" does not fit any more: what it replaces is ${times} times in ${file}. ` +
        "Plant the same bug in the code that is there now.",
    );
  return text.replace(replaces, () => by);
}
