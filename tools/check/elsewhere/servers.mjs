// npm run test:elsewhere -- servers: what `npm test` runs, on every Redis and Valkey that is here,
// as a table.
//
//   npm run test:elsewhere -- servers                 all of them
//   npm run test:elsewhere -- servers --quick         the smoke, rights and contract tests only
//   npm run test:elsewhere -- servers test/quorum     these test files
//
// Which servers: the programs that HOLDFAST_SERVERS names, paths with ":" between them as in PATH; without it
// redis-server and valkey-server of the PATH, and the Redis 6.2 that tools/redis/old-redis.mjs has fetched.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { oldRedis } from "../../redis/old-redis.mjs";
import { root, runTests } from "./run-tests.mjs";

const QUICK = [
  ...["client/smoke", "client/acl", "client/old-server", "quorum/rights"],
  ...[
    "lock/lock.contract",
    "lock/fair-lock.contract",
    "spin/spin-lock.contract",
    "quorum/quorum-lock.contract",
    "multi-lock/multi-lock",
  ],
  ...[
    "redisson/redisson-lock.contract",
    "redisson/redisson-fenced-lock.contract",
    "redisson/redisson-lock",
    "redisson/redisson-fenced-lock",
  ],
  ...[
    "read-write/read-lock.contract",
    "read-write/write-lock.contract",
    "semaphore/permit.contract",
    "semaphore/semaphore",
  ],
  ...["list/list", "election/terms", "once/once"],
].map((name) => `test/${name}.test.ts`);

const words = process.argv.slice(2);
const chosen = [...(words.includes("--quick") ? QUICK : []), ...words.filter((word) => word !== "--quick")];
const cache = join(root, "node_modules", ".cache", "servers");

/** Their paths, each program once, however many names it has. */
function programs() {
  const all = candidates().map((path) => [realpathSync(path), path]);
  return [...new Map(all.reverse()).values()].reverse();
}

function candidates() {
  const { HOLDFAST_SERVERS: given, PATH = "" } = process.env;
  if (given) return given.split(delimiter).filter((path) => path !== "");
  const folders = PATH.split(delimiter).filter((folder) => folder !== "");
  const named = ["redis-server", "valkey-server"].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  );
  return [...named, oldRedis].filter((path) => existsSync(path));
}

/** Such as "Redis 7.0.15"; throws when the program does not run. */
function nameOf(program) {
  const said = execFileSync(program, ["--version"], { encoding: "utf8" });
  return `${/valkey/i.test(said) ? "Valkey" : "Redis"} ${/\bv=(\S+)/.exec(said)?.[1]}`;
}

function row(...cells) {
  const [name, ...numbers] = cells;
  return `| ${String(name).padEnd(14)} | ${numbers.map((one) => String(one).padStart(7)).join(" | ")} |`;
}

mkdirSync(cache, { recursive: true });
const failures = [];
console.log(row("server", "passed", "failed", "skipped", "s"));
console.log("|---|---|---|---|---|");
for (const program of programs()) {
  const name = nameOf(program);
  // Tests launch the first redis-server of the PATH: this one, whatever its name is.
  const folder = mkdtempSync(join(tmpdir(), "holdfast-server-"));
  symlinkSync(program, join(folder, "redis-server"));
  const env = { ...process.env, PATH: folder + delimiter + process.env.PATH };
  // These name another server.
  delete env.REDIS_URL;
  delete env.TEST_REDIS;
  const log = join(cache, `${name.replace(" ", "-")}.log`);
  const { ok, passed, failed, skipped, seconds, failures: what } = await runTests({ chosen, env, log });
  rmSync(folder, { recursive: true });
  console.log(row(name, passed, failed, skipped, seconds));
  if (!ok) failures.push(`${name}: ${log}`, ...what.slice(0, 20).map((line) => `  ${line}`));
}
for (const line of failures) console.log(line);
if (failures.length > 0) process.exitCode = 1;
