import { defineConfig } from "vitest/config";
import { Retried } from "./test/support/retried.ts";

const FAULTS = ["test/faults-*.test.ts", "test/support*.test.ts", "test/topologies*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "default", include: ["test/*.test.ts"], exclude: FAULTS } },
      // Whatever can go wrong, and the tools that make it go wrong.
      { extends: true, test: { name: "faults", include: FAULTS } },
      // The contract of every lock kind on every topology: minutes, beside up to nine servers; leases of 300 ms can be lost
      // when they take both cores.
      { extends: true, test: { name: "topologies", include: ["test/topologies/*.test.ts"], retry: 1 } },
      // Locks that are shared with a real Redisson in Java; skipped where Maven or Java is missing.
      {
        extends: true,
        test: {
          name: "interop",
          include: ["test/interop/*.test.ts"],
          globalSetup: ["test/interop/build-java.ts"],
        },
      },
      // A planted bug shows itself with some probability in one short run.
      { extends: true, test: { name: "chaos", include: ["test/chaos/**/*.test.ts"], retry: 2 } },
    ],
    // A machine that stands still for some hundred ms must not fail a run that nobody watches. It names at its end what it
    // has tried again, and why.
    retry: process.env.CI ? 1 : 0,
    reporters: ["default", new Retried()],
    globalSetup: ["test/support/redis-for-tests.ts"],
    testTimeout: 20_000,
    hookTimeout: 120_000,
    // Most of their time tests wait: three files at a time keep two cores busy, and timing conditions honest.
    maxWorkers: 3,
  },
});
