import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { packPackage } from "./packed.ts";

declare module "vitest" {
  interface ProvidedContext {
    /**
     * The folder that has the packed package as "package", and the copy of the project that it was
     * made of as "source".
     */
    packedIn: string;
    /** The paths in the tarball, without its top folder. */
    packed: string[];
  }
}

/** Packs the package once, for all tests of this suite. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const temp = await mkdtemp(join(tmpdir(), "holdfast-package-"));
  const remove = () => rm(temp, { recursive: true, force: true });
  try {
    project.provide("packed", await packPackage(temp));
  } catch (error) {
    await remove();
    throw error;
  }
  project.provide("packedIn", temp);
  return remove;
}
