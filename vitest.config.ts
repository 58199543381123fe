import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

/** These have suites of their own. What lies in any other folder of test/ is in the default suite. */
const OWN_SUITES = "test/{chaos,cli,interop,package,page,recipes,topologies}/**";
/** The tests of what other tests break things with. */
const SUPPORT = "test/support/**/*.test.ts";
/** What goes wrong with one behaviour stands beside it. */
const FAULTS = "test/**/*.faults.test.ts";
/** What every lock kind promises: on one server in the default suite, and in those that say where with `contractsOn`. */
const CONTRACTS = "test/**/*.contract.test.ts";
/** What stands beside contracts in the suite `memory`. */
const MEMORY = "test/testing/*.memory.test.ts";

/** Does it work on this machine at all? Each kind of lock once, what processes and faults do to the default one. A minute. */
const SMOKE = [
  "test/client/smoke.test.ts", // each way to connect
  "test/lock/lock.contract.test.ts", // the contract of the default lock
  "test/client/acl.test.ts",
  "test/linger/cached-lock.test.ts",
  "test/read-write/readers-and-writers.test.ts",
  "test/once/once.test.ts",
  "test/multi-lock/processes.test.ts",
  "test/semaphore/processes.test.ts",
  "test/election/terms.test.ts",
  "test/quorum/quorum-lock.contract.test.ts",
  "test/fencing/fencing.test.ts",
  "test/optimistic/optimistic.test.ts",
  "test/lock/killed-and-stopped-processes.faults.test.ts",
  "test/lock/resent-commands.faults.test.ts",
  "test/lock/lost-keys.faults.test.ts",
];

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "default",
          include: ["test/**/*.test.ts"],
          exclude: [OWN_SUITES, SUPPORT, FAULTS, MEMORY],
        },
      },
      { extends: true, test: { name: "smoke", include: SMOKE } },
      // Whatever can go wrong, and the tools that make it go wrong.
      {
        extends: true,
        test: {
          name: "faults",
          include: [FAULTS, SUPPORT],
          exclude: [OWN_SUITES],
        },
      },
      // What a user gets, built and compiled against.
      {
        extends: true,
        test: {
          name: "package",
          include: ["test/package/*.test.ts"],
          globalSetup: ["test/package/pack.ts"],
        },
      },
      // The program `holdfast`: each test has processes of its own, and most wait for them.
      { extends: true, test: { name: "cli", include: ["test/cli/**/*.test.ts"] } },
      // The page in a real browser; `npm run test:page` finds or installs one.
      { extends: true, test: { name: "page", include: ["test/page/*.test.ts"] } },
      // The contract of every lock kind on every topology: minutes, beside up to nine servers.
      {
        extends: true,
        test: {
          name: "topologies",
          include: ["test/topologies/**/*.test.ts", CONTRACTS],
          provide: { contractsOn: "all other topologies" },
        },
      },
      // The contract of every lock kind in the memory that users test with: it waits, and computes little.
      {
        extends: true,
        test: {
          name: "memory",
          include: [CONTRACTS, MEMORY],
          exclude: ["test/quorum/**"],
          provide: { contractsOn: "memory" },
          maxWorkers: 9,
        },
      },
      // Locks that are shared with a real Redisson in Java; skipped where Maven or Java is missing.
      {
        extends: true,
        test: {
          name: "interop",
          include: ["test/interop/*.test.ts"],
          globalSetup: ["test/interop/build-java.ts"],
        },
      },
      // The chaos run finds what was planted. One after the other: each has a fleet of processes.
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
    // Nothing is tried again: a test that fails on a machine that stands still for a second is wrong.
    globalSetup: ["test/support/machine-first.ts", "test/support/redis-for-tests.ts"],
    setupFiles: ["test/support/warnings.ts"],
    // Long: a busy machine takes seconds to start a process. What must be over sooner has a limit of its own.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Most of their time tests wait, so there are more files at a time than cores; with eight of them, tests ran out of time.
    maxWorkers: 6,
    // Of tests that run side by side in one file. They mostly wait.
    maxConcurrency: 10,
    sequence: { sequencer: LongestFirst },
  },
});
