// Checks the model of the hand-off protocol with Spin: what must hold, and what must be found. See README.md.
//   node proof/run.mjs            everything, a few minutes
//   node proof/run.mjs --quick    what fits into a minute
//   node proof/run.mjs again      only the runs whose names contain a word; a counterexample is printed
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const MODEL = fileURLToPath(new URL("handoff.pml", import.meta.url));
/** Bounds of one search: MB, and seconds. */
const MEMORY = 4_000;
const SECONDS = 180;

/** Kinds of faults (CAN_… in the model). */
const KINDS = {
  BREAK: "connection breaks",
  KEEP: "a late copy",
  TIME_OUT: "a time-out",
  DENY: "a refused write",
  CRASH: "a crash",
  MISS: "messages lost",
  APART: "a subscriber not counted",
  STEP: "the clock steps back",
  FORCE: "a forced release",
};
const FAULTS = Object.keys(KINDS);
const can = (...kinds) => `-DFAULTS=1 ${kinds.map((kind) => `-DCAN_${kind}`).join(" ")}`;
const two = "-DTURNS=2 -DDELAYS=2";
const three = "-DTURNS=3";

/** What must hold. `quick`: the smaller bounds of the short version; null: not in it. */
const HOLD = [
  [
    "two clients, extensions, aborts",
    `${two} -DABORTS=1 -DEXTENDS=1`,
    "-DTURNS=2 -DDELAYS=1 -DABORTS=1 -DEXTENDS=1",
  ],
  ...FAULTS.map((kind) => [`two clients, ${KINDS[kind]}`, `${two} ${can(kind)}`, null]),
  ["two clients, any fault", null, `-DTURNS=2 -DDELAYS=0 ${can(...FAULTS)}`],
  ["three clients", `${three} -DDELAYS=1`, `${three} -DDELAYS=1 -DROUNDS=1`],
  ["three clients, connection breaks", `${three} -DDELAYS=0 -DROUNDS=1 ${can("BREAK", "TIME_OUT")}`, null],
  ["three clients, a break and delays", `${three} -DPLAIN -DROUNDS=1 -DDELAYS=2 ${can("BREAK")}`, null],
  ["three clients, messages lost, crash", `${three} -DDELAYS=0 -DROUNDS=1 ${can("MISS", "CRASH")}`, null],
  [
    "tokens, two clients",
    `${two} -DTOKENS ${can("BREAK", "FORCE")}`,
    `-DTURNS=2 -DDELAYS=0 -DTOKENS ${can("BREAK", "FORCE")}`,
  ],
  ["tokens, three clients", `${three} -DDELAYS=1 -DROUNDS=1 -DTOKENS`, null],
  [
    "fair: two places in one client",
    `${three} -DFAIR -DROUNDS=1 -DDELAYS=1`,
    `${three} -DFAIR -DROUNDS=1 -DDELAYS=0`,
  ],
  ["fair, messages lost, crash", `${three} -DFAIR -DROUNDS=1 -DDELAYS=0 ${can("MISS", "CRASH")}`, null],
  [
    "no lost waiter: two clients, any fault",
    `-DTURNS=2 -DCALM -DBOUND=3 -DDELAYS=1 ${can(...FAULTS, "FREEZE")}`,
    `-DTURNS=2 -DCALM -DBOUND=3 -DDELAYS=0 ${can(...FAULTS, "FREEZE")}`,
  ],
  ["no lost waiter: three clients", `${three} -DCALM -DBOUND=3 -DDELAYS=1 -DROUNDS=1`, null],
  [
    "no lost waiter: fair",
    `${three} -DFAIR -DCALM -DBOUND=5 -DDELAYS=0 -DROUNDS=1 ${can("MISS", "CRASH")}`,
    null,
  ],
  [
    "waiting, no fault: no tick",
    `${three} -DURGENT -DABORTS=1 -DBOUND=0`,
    `${three} -DURGENT -DABORTS=1 -DBOUND=0`,
  ],
  [
    "waiting, connection breaks: no tick",
    `${three} -DURGENT -DBOUND=0 ${can("BREAK", "TIME_OUT", "DENY")}`,
    `${three} -DURGENT -DBOUND=0 ${can("BREAK", "TIME_OUT", "DENY")}`,
  ],
  [
    "waiting, messages lost: a re-check",
    `${three} -DURGENT -DTURN_KEPT -DBOUND=1 ${can("MISS")}`,
    `${three} -DURGENT -DTURN_KEPT -DBOUND=1 ${can("MISS")}`,
  ],
  [
    "waiting, any one fault: a lease",
    `${three} -DURGENT -DBOUND=3 ${can(...FAULTS, "FREEZE")}`,
    `${three} -DROUNDS=1 -DURGENT -DBOUND=3 ${can(...FAULTS, "FREEZE")}`,
  ],
  [
    "waiting, fair: a lease and a window",
    `${three} -DFAIR -DROUNDS=1 -DURGENT -DBOUND=5 ${can("BREAK", "MISS", "CRASH", "FREEZE")}`,
    null,
  ],
];

/** One rule is left out: what must be found. All of them are in the quick version. */
const FOUND = [
  ["HOLD_REUSED", two],
  ["MINE_NOT_RAISED", two],
  ["RENEW_SHORTENS", `${two} -DEXTENDS=1`],
  ["T_MOVED", two],
  ["DEADLINE_FROM_RECEIPT", two],
  ["PUBLISH_FIRST", `${two} ${can("DENY")}`],
  ["TOKENS_NOT_RESERVED", `${two} -DTOKENS`],
  ["NO_LEAVE", `${two} ${can("TIME_OUT")}`],
  ["RECHECK_LONG", `-DTURNS=2 -DURGENT -DTURN_KEPT ${can("MISS")}`],
  ["NO_RECHECK", `-DTURNS=2 -DURGENT ${can("MISS")}`],
  ["QUEUES_UNHEARD", "-DTURNS=2 -DURGENT -DBOUND=0"],
  ["NO_NOT_AFTER", `${two} ${can("KEEP")}`],
  ["AGAIN_QUEUES", `${two} -DFLAW_CLAIM_AFTER_DEADLINE`],
  ["ONE_RECEIPT", `${two} -DTOKENS ${can("BREAK")}`],
  ["CLAIM_AFTER_DEADLINE", `${two} ${can("BREAK")}`],
  ["STALE_FORGOTTEN", `${two} -DREPLY=1 ${can("BREAK")}`],
  ["CLAIM_FORGOTTEN", `${three} -DPLAIN -DROUNDS=1 -DDELAYS=2 ${can("BREAK")}`],
  ["LATE_RENEWAL_COUNTS", `${two} ${can("KEEP")}`],
  ["PUBLISH_THEN_SKIP", `${two} ${can("APART")}`],
];

function has(command) {
  return (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, command)));
}

/** True when spin and a C compiler are there, perhaps because they have just been installed. */
function prepare() {
  const missing = [has("spin") ? [] : ["spin"], has("cc") || has("gcc") ? [] : ["gcc", "libc6-dev"]].flat();
  if (missing.length === 0) return true;
  const why =
    process.env.HOLDFAST_NO_INSTALL === "1"
      ? "HOLDFAST_NO_INSTALL=1"
      : !existsSync("/etc/debian_version")
        ? "this is neither Debian nor Ubuntu"
        : process.getuid?.() !== 0
          ? "this needs root"
          : has("apt-get")
            ? null
            : "there is no apt-get on the PATH";
  if (why) {
    console.log(`proof: skipped, ${missing.join(", ")} not found and not installed: ${why}`);
    return false;
  }
  console.log(`proof: installing Debian's ${missing.join(", ")} (HOLDFAST_NO_INSTALL=1 prevents it) ...`);
  const options = { stdio: "pipe", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  execFileSync("apt-get", ["update"], options);
  execFileSync("apt-get", ["install", "-y", "--no-install-recommends", ...missing], options);
  return true;
}

function call(command, args, cwd, timeout = 0) {
  return new Promise((resolve) => {
    execFile(command, args, { cwd, timeout, maxBuffer: 1 << 28 }, (error, stdout, stderr) =>
      resolve({
        failed: error !== null && typeof error.code !== "number",
        code: error?.code ?? 0,
        text: stdout + stderr,
      }),
    );
  });
}

/** One search. `verdict`: holds, found, unfinished (not exhaustive) or broken. */
async function search(flags, level) {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-proof-"));
  const started = performance.now();
  try {
    const defines = flags.split(" ").filter(Boolean);
    const made = await call("spin", ["-a", ...defines, MODEL], folder);
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
    const built = await call(has("cc") ? "cc" : "gcc", [...options, "-o", "pan", "pan.c"], folder);
    if (built.code !== 0) return { verdict: "broken", text: built.text };
    const { text, failed } = await call(join(folder, "pan"), ["-m200000", "-w23"], folder, SECONDS * 1_000);
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
      broken && (await call("spin", ["-T", "-k", "handoff.pml.trail", ...defines, MODEL], folder)).text;
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

async function main(args) {
  const isQuick = args.includes("--quick");
  const wanted = args.filter((arg) => !arg.startsWith("--"));
  if (!prepare()) return 0;
  const runs = [
    ...HOLD.map(([name, full, quick]) => ({ name, flags: isQuick ? quick : full, expected: "holds" })),
    ...FOUND.map(([name, flags]) => ({
      name: `without a rule: ${name}`,
      flags: `${flags} -DFLAW_${name}`,
      expected: "found",
    })),
  ].filter(({ name, flags }) => flags !== null && wanted.every((word) => name.includes(word)));
  let wrong = 0;
  const started = performance.now();
  const check = async ({ name, flags, expected }) => {
    const {
      verdict,
      states = 0,
      seconds = 0,
      text,
      broken,
    } = await search(flags, isQuick || expected === "found" ? "-O0" : "-O1");
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

process.exitCode = await main(process.argv.slice(2));
