// npm run test:recipes: every program of docs/recipes.md and docs/migrating.md, against the package
// as npm would install it, and those of examples/, as their own page says. They have a real Redis.
// Two run at a time, each lane with a Redis of its own. Arguments are names of programs; without any
// all of them run, in CI half of the recipes, or the examples, in turn.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findRedis } from "../../tools/redis/index.ts";
import { inTurn, partsOf } from "../support/in-turn.ts";
import { noPostgres, Postgres } from "../support/postgres.ts";

const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  "one-of-n": [],
  bundlers: [],
  "web-request": [],
  "idempotency-key": [],
  "refresh-token": [],
  "after-commit": [],
  conversation: [],
  "file-leases": [],
  "outside-api": [],
  "cron-once": [],
  "beside-a-queue": [],
  "limit-per-tenant": [],
  "cache-stampede": [],
  "give-way": [],
  shutdown: [],
  nest: [],
  metrics: [],
  traces: [],
  "unit-test": [],
  jest: ["node_modules/jest/bin/jest.js", "--config", "programs/jest/jest.config.cjs"],
  "node-test": ["--test", "programs/node-test/lock.test.mjs"],
  serverless: [],
  "worker-threads": [],
  runtimes: [],
  "migrating/redlock-4": [],
  "migrating/redlock-5": [],
  "migrating/redlock-universal": [],
  "migrating/redis-semaphore": [],
  "migrating/async-mutex": [],
  "migrating/redisson": [],
  "migrating/shedlock": [],
  "migrating/rolling-deploy": [],
};

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "../..");
const examples = join(root, "examples");
/** Such as "examples/nest". */
const EXAMPLES = readdirSync(examples).flatMap((name) =>
  existsSync(join(examples, name, "index.ts")) ? [`examples/${name}`] : [],
);
const ALL = [...Object.keys(PROGRAMS), ...EXAMPLES];

/** Far more than any of them takes on a slow and busy machine: it hangs. */
const ENDS_WITHIN = 360_000;

/** Runs a program. Resolves with what it printed, on both streams; rejects with that when it fails. */
function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: ENDS_WITHIN,
      killSignal: "SIGKILL",
    });
    const pieces: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (piece: Buffer) => pieces.push(piece));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      const output = Buffer.concat(pieces).toString();
      if (code === 0) resolve(output);
      else reject(new Error(`${command} ${args.join(" ")}: ${code ?? signal}\n${output}`));
    });
  });
}

const QUIET = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"];

/** Installs what the programs of this folder need, unless that is there. */
async function installIn(folder: string): Promise<void> {
  const wanted = createHash("sha256")
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex");
  const mark = join(folder, "node_modules/.installed");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return;
  await run("npm", ["ci", ...QUIET], folder);
  writeFileSync(mark, wanted);
}

/** Packs these sources, which builds them for the examples, and installs that for the recipes. */
async function installPackage(isForRecipes: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-package-"));
  try {
    await run("npm", ["pack", "--silent", "--pack-destination", folder], root);
    const packed = readdirSync(folder).map((file) => join(folder, file));
    if (isForRecipes)
      await run("npm", ["install", "--no-save", "--no-package-lock", ...QUIET, ...packed], here);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * The classes that docs/migrating.md has users copy, as a service has them. Here are two versions of
 * redlock, under names of their own.
 */
function copyClasses(): void {
  const from = join(root, "docs/without-a-stop");
  const to = join(here, "programs/migrating/without-a-stop");
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(from)) {
    const text = readFileSync(join(from, file), "utf8");
    const [version = ""] = /(?<=redlock-)\d/.exec(file) ?? [];
    writeFileSync(join(to, file), text.replace('from "redlock"', `from "redlock${version}"`));
  }
}

function runOne(name: string, env: Record<string, string>): Promise<string> {
  if (EXAMPLES.includes(name)) return run("npm", ["start", "--silent"], join(root, name), env);
  const [...args] = PROGRAMS[name] ?? [];
  if (args.length === 0) args.push(`build/${name}.js`);
  return run(process.execPath, args, here, env);
}

/** Runs the programs, one after the other, until none is left. False when one of them has failed. */
async function runLane(left: string[], env: Record<string, string>): Promise<boolean> {
  let isFine = true;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    const began = performance.now();
    const outcome = await runOne(name, env).catch((error: Error) => error);
    const isOk = typeof outcome === "string";
    const time = ((performance.now() - began) / 1_000).toFixed(1).padStart(5);
    process.stdout.write(
      `${isOk ? "ok    " : "FAILED"} ${time} s  ${name}\n${isOk ? outcome : outcome.message}`,
    );
    isFine &&= isOk;
  }
  return isFine;
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !ALL.includes(name));
if (unknown.length > 0) throw new Error(`there is no program ${unknown.join(", ")}: ${ALL.join(", ")}`);

const left = asked.length > 0 ? asked : inTurn([...partsOf(Object.keys(PROGRAMS), 2), EXAMPLES]).flat();
const folders = [here, examples].filter((folder) =>
  left.some((name) => EXAMPLES.includes(name) === (folder === examples)),
);

await Promise.all(folders.map(installIn));
await installPackage(folders.includes(here));
rmSync(join(here, "build"), { recursive: true, force: true });
copyClasses();
const tsc = join(root, "node_modules/typescript7/bin/tsc");
for (const folder of folders) await run(process.execPath, [tsc, "-p", "tsconfig.json"], folder);

// A Redis that is given is one: programs that run at a time would meet there.
const servers = [await findRedis()];
if (!process.env.REDIS_URL) servers.push(await findRedis());
let postgres: Postgres | null = null;
try {
  if (left.includes("after-commit") && !noPostgres) postgres = await Postgres.launch();
  const lanes = servers.map(({ url }) => runLane(left, { REDIS_URL: url, ...postgres?.env }));
  if ((await Promise.all(lanes)).includes(false)) process.exitCode = 1;
} finally {
  await postgres?.stop();
  for (const server of servers) await server.stop();
}
