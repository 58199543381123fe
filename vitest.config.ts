import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/redis-for-tests.ts"],
    testTimeout: 20_000,
    hookTimeout: 120_000,
    // Two cores are enough for the suite, and timing conditions stay honest with two files at a time.
    maxWorkers: 2,
  },
});
