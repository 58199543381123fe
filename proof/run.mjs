// Checks the models of the protocols with Spin: what must hold, and what must be found. See README.md.
//   node proof/run.mjs            everything, a few minutes
//   node proof/run.mjs --quick    what fits into a minute
//   node proof/run.mjs --part 1/3 one of three parts of them, by every third run
//   node proof/run.mjs again      only the runs whose names contain a word; a counterexample is printed
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { RUNS } from "./runs.mjs";

/** Bounds of one search: MB, and seconds of CPU time, so a busy machine stops no search early. */
const MEMORY = 4_000;
const CPU_SECONDS = 180;
/** Locked while this repository runs apt-get: here, and in tools/redis/install.ts. */
const APT_LOCK = "/tmp/holdfast-apt-get.lock";

function has(command) {
  return (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, command)));
}

/** Why nothing may be installed here; null: it may. */
function whyNotInstall() {
  if (process.env.HOLDFAST_NO_INSTALL === "1") return "HOLDFAST_NO_INSTALL=1";
  if (!existsSync("/etc/debian_version")) return "this is neither Debian nor Ubuntu";
  if (process.getuid?.() !== 0) return "this needs root";
  return has("apt-get") ? null : "there is no apt-get on the PATH";
}

/**
 * What compiles a search; null: spin or a C compiler is missing. Either may just have been
 * installed. Most searches of the short version are over sooner than gcc: tcc takes 0.05 s for what
 * gcc takes a second for, and its searches are a fifth slower.
 */
function prepare(isQuick) {
  const gcc = has("cc") ? "cc" : "gcc";
  const missing = has("spin") ? [] : ["spin"];
  if (isQuick && !has("tcc")) missing.push("tcc", "libc6-dev");
  if (!isQuick && !has(gcc)) missing.push("gcc", "libc6-dev");
  const why = whyNotInstall();
  if (missing.length > 0 && why === null) {
    console.log(`proof: installing Debian's ${missing.join(", ")} (HOLDFAST_NO_INSTALL=1 prevents it) ...`);
    const options = { stdio: "pipe", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
    try {
      // RACE: the tests may install at the same time, and apt-get fails while another one is running.
      const aptGet = (...args) => execFileSync("flock", [APT_LOCK, "apt-get", ...args], options);
      aptGet("update");
      aptGet("install", "-y", "--no-install-recommends", ...missing);
    } catch (error) {
      if (!has("spin") || !has(gcc)) throw error; // it goes without tcc
    }
  }
  const compiler = isQuick && has("tcc") ? "tcc" : gcc;
  if (has("spin") && has(compiler)) return compiler;
  console.log(`proof: skipped, ${missing.join(", ") || gcc} not found and not installed: ${why}`);
  return null;
}

function call(command, args, cwd) {
  return new Promise((resolve) => {
    execFile(command, args, { cwd, maxBuffer: 1 << 28 }, (error, stdout, stderr) =>
      resolve({
        failed: error !== null && typeof error.code !== "number",
        code: error?.code ?? 0,
        text: stdout + stderr,
      }),
    );
  });
}

/** One search. `verdict`: holds, found, unfinished (not exhaustive) or broken. */
async function search(model, flags, compiler, level) {
  const path = fileURLToPath(new URL(model, import.meta.url));
  const folder = await mkdtemp(join(tmpdir(), "holdfast-proof-"));
  const started = performance.now();
  try {
    const defines = flags.split(" ").filter(Boolean);
    const made = await call("spin", ["-a", ...defines, path], folder);
    if (/error/i.test(made.text)) return { verdict: "broken", text: made.text };
    const options = [
      level,
      "-w",
      "-DSAFETY",
      "-DCOLLAPSE",
      "-DNOREDUCE",
      "-DVECTORSZ=1024",
      `-DMEMLIM=${MEMORY}`,
    ];
    const built = await call(compiler, [...options, "-o", "pan", "pan.c"], folder);
    if (built.code !== 0) return { verdict: "broken", text: built.text };
    const { text, failed } = await call(
      "sh",
      ["-c", `ulimit -t ${CPU_SECONDS}; exec ./pan -m200000 -w23`],
      folder,
    );
    const states = Number(/(\d+(?:\.\d+e\+\d+)?) states, stored/.exec(text)?.[1] ?? 0);
    const seconds = (performance.now() - started) / 1_000;
    const broken =
      /assertion violated .*/.exec(text)?.[0] ??
      /invalid end state/.exec(text.split("Full statespace")[0])?.[0];
    const isWhole =
      !failed &&
      /errors: 0/.test(text) &&
      !/Search not completed|max search depth too small|out of memory/i.test(text);
    const verdict = broken ? "found" : isWhole ? "holds" : "unfinished";
    const trail =
      broken && (await call("spin", ["-T", "-k", `${model}.trail`, ...defines, path], folder)).text;
    return { verdict, states, seconds, text: trail || text, broken };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Steps of a counterexample without Spin's list of all variables at its end. */
const steps = (text) =>
  text
    .split("#processes")[0]
    .split("\n")
    .filter((line) => line.trim())
    .join("\n");

async function main() {
  const { values, positionals: wanted } = parseArgs({
    options: { quick: { type: "boolean", default: false }, part: { type: "string", default: "1/1" } },
    allowPositionals: true,
  });
  const isQuick = values.quick;
  const [part, parts] = values.part.split("/").map(Number);
  const compiler = prepare(isQuick);
  if (compiler === null) return 0;
  const runs = RUNS.map(({ full, quick, ...run }) => ({ ...run, flags: isQuick ? quick : full }))
    .filter(({ name, flags }) => flags !== null && wanted.every((word) => name.includes(word)))
    .filter((_, i) => i % parts === part - 1);
  let wrong = 0;
  const started = performance.now();
  const check = async ({ model, name, flags, expected }) => {
    const {
      verdict,
      states = 0,
      seconds = 0,
      text,
      broken,
    } = await search(model, flags, compiler, isQuick || expected === "found" ? "-O0" : "-O1");
    const isRight = verdict === expected;
    if (!isRight) wrong++;
    const note =
      verdict === "unfinished" ? " (not exhaustive: out of time or memory)" : broken ? ` (${broken})` : "";
    console.log(
      `${isRight ? "ok   " : "WRONG"} ${name.padEnd(44)} ${String(states).padStart(9)} states ${seconds.toFixed(1).padStart(6)} s  ${verdict}${isRight && !wanted.length ? "" : note}`,
    );
    if (!isRight || wanted.length > 0)
      console.log(`      ${flags}\n${verdict === "holds" ? "" : steps(text)}`);
  };
  const queue = runs.values();
  const lane = async () => {
    for (const run of queue) await check(run);
  };
  // A long search may take all the memory that it is allowed.
  await Promise.all(Array.from({ length: isQuick ? availableParallelism() : 1 }, lane));
  const total = ((performance.now() - started) / 1_000).toFixed(0);
  console.log(
    `proof: ${runs.length} runs in ${total} s, ${wrong === 0 ? "all as expected" : `${wrong} not as expected`}`,
  );
  return wrong === 0 ? 0 : 1;
}

process.exitCode = await main();
