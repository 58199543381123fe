import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { copyWith, ROOT } from "./copy.ts";
import type { Plant } from "./plant.ts";

/** What tests on a real Redis read. */
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

interface Report {
  readonly testResults: readonly {
    /** Why the file could not be read, if it could not. */
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** Does this test exist? @throws Error if not */
export async function find({ name, test }: Plant): Promise<void> {
  const text = await readFile(join(ROOT, test?.file ?? ""), "utf8");
  if (!text.includes(test?.title ?? ""))
    throw new Error(`"${name}": ${test?.file} has no test "${test?.title}"`);
}

/**
 * Directed runs need no server and no measuring of the machine: half of their time. What is compiled
 * stays in the copy, for the next plant.
 */
async function plainConfig(root: string): Promise<string> {
  const experimental = { fsModuleCache: true, fsModuleCachePath: join(root, "compiled") };
  const test = {
    include: ["test/world/directed/*.test.ts"],
    testTimeout: 60_000,
    pool: "threads",
    experimental,
  };
  const path = join(root, "plain.config.mjs");
  await writeFile(path, `export default ${JSON.stringify({ test })};\n`);
  return path;
}

/**
 * Runs the plant's own test, with its bug or without. Returns how many tests passed, and failed.
 * @throws Error if none ran
 */
export async function run(plant: Plant, isPlanted: boolean): Promise<{ passed: number; failed: number }> {
  if (!plant.test) throw new Error(`"${plant.name}" has no test of its own`);
  await find(plant);
  const { file, title, project } = plant.test;
  await using copy = await copyWith(isPlanted ? plant : null, project === "world" ? undefined : PARTS);
  const by = project === "world" ? ["--config", await plainConfig(copy.root)] : ["--project", project];
  const args = ["node_modules/vitest/vitest.mjs", "run", ...by, file, "--reporter", "json"];
  const pattern = title.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST"));
  const options = { cwd: copy.root, env: Object.fromEntries(own), maxBuffer: 2 ** 26 };
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [...args, "-t", pattern], options, (_, stdout) => resolve(stdout));
  });
  const report: Report = JSON.parse(output.slice(output.indexOf("{")));
  const all = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const count = (status: string): number => all.filter((one) => one.status === status).length;
  const counts = { passed: count("passed"), failed: count("failed") };
  if (counts.passed + counts.failed === 0)
    throw new Error(
      `"${plant.name}": no test ran. ${report.testResults.map(({ message }) => message).join()}`,
    );
  return counts;
}
