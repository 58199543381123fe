import { execFile } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { figure, prove } from "./support.ts";

const entry = fileURLToPath(new URL("portable.js", import.meta.url));
// has no node_modules: a bundle must have all that it needs
const folder = await mkdtemp(join(tmpdir(), "holdfast-bundles-"));
const run = promisify(execFile);

async function proveThatItRuns(file: string): Promise<void> {
  const { stdout } = await run(process.execPath, [file]);
  prove(stdout.includes("all is well"), `${file} runs`);
  figure(file.split("/").at(-1) ?? file, `${Math.round((await stat(file)).size / 1024)} KiB`);
}

try {
  // #region esbuild
  const everything = { bundle: true, platform: "node", target: "node20", minify: true } as const;
  await build({ ...everything, entryPoints: [entry], format: "cjs", outfile: `${folder}/with-ioredis.cjs` });
  // #endregion
  await proveThatItRuns(`${folder}/with-ioredis.cjs`);

  await build({
    ...everything,
    stdin: { contents: 'export { createLockClient } from "holdfast";', resolveDir: "." },
    format: "esm",
    external: ["ioredis"],
    outfile: `${folder}/alone.mjs`,
  });
  figure(
    "createLockClient alone, minified",
    `${Math.round((await stat(`${folder}/alone.mjs`)).size / 1024)} KiB`,
  );

  const rollup = [
    "node_modules/rollup/dist/bin/rollup",
    "--config",
    "programs/rollup.config.mjs",
    "--silent",
  ];
  await run(process.execPath, rollup);
  await proveThatItRuns(fileURLToPath(new URL("without-ioredis.mjs", import.meta.url)));
} finally {
  await rm(folder, { recursive: true });
}
