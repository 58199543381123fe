import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { FailuresLast } from "./test/support/failures-last.ts";
import { patientReplies } from "./test/support/first-reply.ts";
import { LongestFirst } from "./test/support/longest-first.ts";

/** These have their own suites. Tests in any other folder of test/ are in the default suite. */
const OWN_SUITES = "test/{chaos,cli,interop,package,page,recipes,topologies,world}/**";
/** The tests of the tools with which other tests inject faults. */
const SUPPORT = "test/support/**/*.test.ts";
/** Tests of a behaviour under faults are next to its other tests. */
const FAULTS = "test/**/*.faults.test.ts";
/** Each has three servers or five, which restart or step their clocks: with the other topologies. */
const QUORUM_FAULTS = "test/quorum/*.faults.test.ts";
/**
 * The promises of every lock kind: on one server in the suite `contracts`, and elsewhere in suites
 * that set `contractsOn`. In the default suite they run in virtual time.
 */
const CONTRACTS = "test/**/*.contract.test.ts";
/** These run in virtual time. */
const VIRTUAL_TIME = [
  "test/contract/virtual-time.test.ts",
  "test/errors/ways-out.test.ts",
  "test/lock/self-wait.test.ts",
  "test/world/virtual-time.test.ts",
];

/** Each plants a bug in a copy of the package, and runs seeds of the world on it. */
const PLANTS = "test/world/plants/*.test.ts";

/** Executions of scripts in the memory Redis, again on real servers. */
const SAME_AS_REDIS = "test/world/differential/*.test.ts";

/** What hangs is found in virtual time, so real time needs no limit; but a run must end. */
const PATIENT = { testTimeout: 600_000, hookTimeout: 600_000 };

/** What is not in the default suite, whatever its text. */
const ELSEWHERE = [OWN_SUITES, SUPPORT, FAULTS];

/** Test files by their path, with their text. */
const TEXTS = readdirSync("test")
  .flatMap((folder) => readdirSync(`test/${folder}`).map((file) => `test/${folder}/${file}`))
  .filter((path) => path.endsWith(".test.ts"))
  .map((path) => [path, readFileSync(path, "utf8")] as const);

const withText = (pattern: RegExp): string[] =>
  TEXTS.filter(([, text]) => pattern.test(text)).map(([path]) => path);

/**
 * These change their process (modules of Node, its clocks, flags of V8) or measure its memory, so
 * each has a process of its own. Other files share processes.
 */
const ALONE = withText(/vi\.mock\((?!"..\/..\/src\/defaults\.ts")|setFlagsFromString\(|Date\.now = /);

/** These have other constants in src, or advance its clocks: each has modules of its own. */
const FRESH = withText(/vi\.mock\("..\/..\/src\/defaults\.ts"|\.test\.advance\(/).filter(
  (path) => !ALONE.includes(path),
);

/**
 * Does it work on this machine at all? Each kind of lock once; for the default lock also several
 * processes and faults. A minute.
 */
const SMOKE = [
  "test/client/smoke.test.ts", // each way to connect
  "test/lock/lock.contract.test.ts", // the contract of the default lock
  "test/client/acl.test.ts",
  "test/linger/cached-lock.test.ts",
  "test/read-write/readers-and-writers.test.ts",
  "test/once/once.test.ts",
  "test/multi-lock/multi-lock.test.ts",
  "test/semaphore/processes.test.ts",
  "test/election/terms.test.ts",
  "test/quorum/quorum-lock.contract.test.ts",
  "test/fencing/fencing.test.ts",
  "test/optimistic/optimistic.test.ts",
  "test/lock/killed-and-stopped-processes.faults.test.ts",
  "test/lock/resent-commands.faults.test.ts",
];

/**
 * The library's own work that differs most between the clients: connections, lost replies, waiting.
 * The drivers' own tests (test/redis, test/topologies/node-redis.faults.test.ts) use all of them in
 * every run.
 */
const ON_NODE_REDIS = [
  "test/support/self/carrier.test.ts", // does node-redis carry the locks here?
  "test/client/smoke.test.ts",
  "test/lock/lock.contract.test.ts",
  "test/semaphore/permit.contract.test.ts",
  "test/read-write/read-lock.contract.test.ts",
  "test/read-write/write-lock.contract.test.ts",
  "test/election/terms.test.ts",
  "test/lock/lost-replies.faults.test.ts",
  "test/lock/resent-commands.faults.test.ts",
  "test/remember/server.faults.test.ts",
  // The program in a project that has node-redis only.
  "test/cli/ls-break-doctor.test.ts",
  "test/cli/inspect-and-top.test.ts",
  "test/cli/run.test.ts",
];

/** In real time. */
const REAL_TIME = { extends: true as const, plugins: [patientReplies] };

/** What a file leaves: no warning, and the server's clock as it was. */
const EACH_FILE = ["test/support/warnings.ts", "test/support/shared-clock.ts"];

/** Files share a process, and not its modules. */
const FRESH_MODULES = ["test/support/fresh-modules.ts", ...EACH_FILE];

export default defineConfig({
  test: {
    projects: [
      {
        ...REAL_TIME,
        test: {
          name: "default",
          include: ["test/**/*.test.ts"],
          exclude: [...ELSEWHERE, CONTRACTS, ...ALONE, ...FRESH, ...VIRTUAL_TIME],
          isolate: false,
        },
      },
      {
        ...REAL_TIME,
        test: {
          name: "default, alone",
          include: ALONE,
          exclude: ELSEWHERE,
        },
      },
      {
        ...REAL_TIME,
        test: {
          name: "default, fresh modules",
          include: FRESH,
          exclude: ELSEWHERE,
          isolate: false,
          setupFiles: FRESH_MODULES,
        },
      },
      // The scripts by themselves, on the Redis in memory too: the default suite has them on a real one.
      {
        extends: true,
        test: {
          name: "default, scripts in memory",
          include: ["test/**/*.scripts.test.ts"],
          provide: { scriptsOn: "memory" },
          isolate: false,
        },
      },
      // In virtual time no test waits, and none can be late. Each file has a process of its own: its
      // events do not depend on other files.
      {
        extends: true,
        test: {
          name: "default, virtual time",
          include: VIRTUAL_TIME,
          setupFiles: ["test/world/begin.ts", "test/support/warnings.ts"],
          ...PATIENT,
          maxConcurrency: 1_000,
        },
      },
      { ...REAL_TIME, test: { name: "smoke", include: SMOKE } },
      // The contract of every lock kind on one real server, or on three masters.
      { ...REAL_TIME, test: { name: "contracts", include: [CONTRACTS], isolate: false } },
      // The same locks on clients of node-redis. Tests about ioredis say so: `skipIf(onNodeRedis)`.
      {
        ...REAL_TIME,
        test: {
          name: "node-redis",
          include: ON_NODE_REDIS,
          env: { HOLDFAST_DRIVER: process.env.HOLDFAST_DRIVER ?? "node-redis" },
        },
      },
      // Behaviour under faults, and the tools that inject them.
      {
        ...REAL_TIME,
        test: {
          name: "faults",
          include: [FAULTS, SUPPORT],
          exclude: [OWN_SUITES, QUORUM_FAULTS],
          isolate: false,
        },
      },
      // Simulated processes in virtual time.
      {
        extends: true,
        test: {
          name: "world",
          include: ["test/world/**/*.test.ts"],
          exclude: [...VIRTUAL_TIME, SAME_AS_REDIS, PLANTS],
          isolate: false,
          ...PATIENT,
        },
      },
      // Does the world find planted bugs?
      { extends: true, test: { name: "plants", include: [PLANTS], maxConcurrency: 2, ...PATIENT } },
      // Does the Redis in memory do what real servers do?
      { extends: true, test: { name: "same-as-redis", include: [SAME_AS_REDIS], ...PATIENT } },
      // The package as users get it, built and compiled against.
      {
        extends: true,
        test: {
          name: "package",
          include: ["test/package/*.test.ts"],
          globalSetup: ["test/package/pack.ts"],
          isolate: false,
        },
      },
      // The program `holdfast`: each test has its own processes, and mostly waits for them.
      {
        ...REAL_TIME,
        test: {
          name: "cli",
          include: ["test/cli/**/*.test.ts"],
          isolate: false,
          setupFiles: FRESH_MODULES,
        },
      },
      // The page in a real browser; `npm run test:page` finds or installs one.
      {
        extends: true,
        // A browser for each file: three of them use both cores.
        test: { name: "page", include: ["test/page/*.test.ts"], maxWorkers: 3, isolate: false },
      },
      // The contract of every lock kind on every topology, and several servers under faults: minutes, with
      // up to nine servers.
      {
        ...REAL_TIME,
        test: {
          name: "topologies",
          include: ["test/topologies/**/*.test.ts", QUORUM_FAULTS, CONTRACTS],
          provide: { contractsOn: "all other topologies" },
          isolate: false,
        },
      },
      // Locks shared with a real Redisson in Java; skipped if Maven or Java is missing.
      {
        ...REAL_TIME,
        test: {
          name: "interop",
          include: ["test/interop/*.test.ts"],
          globalSetup: ["test/interop/build-java.ts"],
        },
      },
      // The chaos run finds the planted bugs. One file after the other: each has a fleet of
      // processes.
      {
        extends: true,
        test: {
          name: "chaos",
          include: ["test/chaos/**/*.test.ts"],
          fileParallelism: false,
          maxConcurrency: 3,
        },
      },
    ],
    // Nothing is retried: a test that fails on a machine that is suspended for a second is wrong.
    globalSetup: ["test/support/machine-first.ts", "test/support/redis-for-tests.ts"],
    setupFiles: EACH_FILE,
    // Long: a busy machine takes seconds to start a process. Tests of shorter times have their own
    // limits.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // With more workers than cores, files wait for each other's CPU time, and a test with an upper
    // bound on real time can miss it without a fault.
    maxWorkers: availableParallelism(),
    // Modules are transformed once, not in every run and every worker.
    experimental: { fsModuleCache: true },
    // For tests that run side by side in one file. They mostly wait.
    maxConcurrency: 10,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", new FailuresLast()],
  },
});
