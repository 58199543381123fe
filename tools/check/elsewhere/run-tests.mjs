// Runs the default suite, or a part of it, for a table of several runs: see node.mjs and servers.mjs.
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const root = fileURLToPath(new URL("../../..", import.meta.url));
const vitest = fileURLToPath(new URL("../../../node_modules/vitest/vitest.mjs", import.meta.url));

/**
 * @param {object} options
 * @param {string[]} options.chosen parts of the names of test files; none: the whole suite
 * @param {NodeJS.ProcessEnv} options.env the environment of the tests
 * @param {string} options.log the file that gets their output; a report is written next to it
 * @param {string} [options.node] another Node.js than this one
 * @param {string[]} [options.suites] the suites; default: the default one
 * @returns the outcome, and one line for each failure
 */
export async function runTests({ chosen, env, log, node = process.execPath, suites = ["default*"] }) {
  const began = performance.now();
  const report = log.replace(/\.log$/, ".json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const options = { cwd: root, env: { ...env, NO_COLOR: "1" }, maxBuffer: 256 * 1024 * 1024 };
  await rm(report, { force: true });
  const args = [vitest, "run", ...suites.map((suite) => `--project=${suite}`), ...chosen, ...reporters];
  const ended = await promisify(execFile)(node, args, options).catch((error) => error);
  await writeFile(log, `${ended.stdout}\n${ended.stderr}`);
  const seconds = Math.round((performance.now() - began) / 1000);
  let told;
  try {
    told = JSON.parse(await readFile(report, "utf8"));
  } catch (error) {
    return { ok: false, passed: 0, failed: 0, skipped: 0, seconds, failures: [`no test has run: ${error}`] };
  }
  const failures = told.testResults.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((one) => one.status === "failed").map((one) => one.fullName);
    // A file that could not even be loaded has no failed tests.
    const what = failed.length === 0 && status === "failed" ? [message.split("\n")[0]] : failed;
    return what.map((text) => `${name.replace(root, "")}: ${text}`);
  });
  return {
    ok: !(ended instanceof Error),
    passed: told.numPassedTests,
    failed: told.numFailedTests,
    skipped: told.numPendingTests + told.numTodoTests,
    seconds,
    failures,
  };
}
