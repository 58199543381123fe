import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/** The worker's program as one module. */
export interface WorkerProgram {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * Builds it once for all processes of the demo: each of them would take 0.3 s of CPU to compile it
 * for itself.
 */
export async function buildWorker(source: URL): Promise<WorkerProgram> {
  // Below node_modules, where it finds node-redis, the one package that it may load.
  const modules = fileURLToPath(new URL("../node_modules", import.meta.url));
  const folder = await mkdtemp(join(modules, ".holdfast-demo-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  const path = join(folder, "worker.js");
  try {
    const input = fileURLToPath(source);
    // With the packages that it imports: a process loads one file in half the time of many.
    const bundle = await rolldown({ input, platform: "node", external: /^(node:|redis$)/ });
    await bundle.write({ file: path, format: "esm", codeSplitting: false });
    return { path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
