import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { Plant } from "./plant.ts";

export const ROOT = resolve(import.meta.dirname, "../../..");
/** What a run of the world reads. */
const PARTS = ["src", "lua", "tools/build", "test/support", "test/world", "package.json", "tsconfig.json"];

/** A folder with a copy of this tree. */
export interface Copy extends AsyncDisposable {
  readonly root: string;
}

/** Copies the tree and plants this; null: nothing. @throws Error if the plant does not fit */
export async function copyWith(plant: Plant | null, parts = PARTS): Promise<Copy> {
  const root = await mkdtemp(join(tmpdir(), "holdfast-plant-"));
  try {
    await Promise.all(parts.map((part) => cp(join(ROOT, part), join(root, part), { recursive: true })));
    await symlink(join(ROOT, "node_modules"), join(root, "node_modules"));
    if (plant) await put(plant, root);
    if (plant?.file.startsWith("lua/"))
      await promisify(execFile)(process.execPath, ["tools/build/embed-lua.mjs"], { cwd: root });
  } catch (error) {
    await rm(root, { recursive: true });
    throw error;
  }
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true }) };
}

async function put(plant: Plant, root: string): Promise<void> {
  await writeFile(join(root, plant.file), await textWith(plant, root));
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
