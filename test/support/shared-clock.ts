import { Redis } from "ioredis";
import { afterAll } from "vitest";
import { until } from "./until.ts";

// After each test file: the clock of tokens of the server that files share is where the server's is. Other
// files' callers would get no tokens by a later one, and give back what they could hand on.

afterAll(async () => {
  const { TEST_REDIS_URL: url } = process.env;
  if (!url) return;
  const redis = new Redis(url);
  try {
    await until(
      async () => {
        const [clock, [seconds]] = await Promise.all([redis.get("holdfast:clock"), redis.time()]);
        return Number(clock) < (Number(seconds) + 2) * 1_000_000;
      },
      { what: "the clock of tokens to be that of the server: a test file has moved it" },
    );
  } finally {
    redis.disconnect();
  }
});
