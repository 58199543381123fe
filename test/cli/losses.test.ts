import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterEach, expect, it } from "vitest";
import { launchServer } from "../../tools/redis/index.ts";
import { Cli, temporary } from "../support/cli.ts";
import { freshName } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Redis stands still under a command that ignores every signal: it must be dead before others may
// get its lock. HOLDFAST_LOSSES=20 does it so often, which is the figure of docs/command-line.md.

const LOSSES = Number(process.env.HOLDFAST_LOSSES ?? 2);
const LEASE = 3_000;
const KILL_AFTER = 1_000;

/** Writes the time into a file every ms, and the times of the signals that it ignores. */
const BEATING = `
const { openSync, writeSync } = require("node:fs");
const [beats, signals] = process.argv.slice(1).map((path) => openSync(path, "w"));
process.on("SIGTERM", () => writeSync(signals, String(Date.now())));
setInterval(() => writeSync(beats, String(Date.now()), 0), 1);
`;

afterEach(() => Cli.endAll());

it(`a command is dead before the end of the lease, ${LOSSES} times`, {
  timeout: 30_000 + LOSSES * 15_000,
}, async ({ annotate }) => {
  const server = await launchServer();
  const redis = new Redis(server.url);
  const [early, warned]: number[][] = [[], []];
  try {
    for (let i = 0; i < LOSSES; i++) {
      const name = freshName();
      const files = ["beats", "signals"].map((file) => join(temporary(), file)) as [string, string];
      const flags = ["--lease", `${LEASE}ms`, "--kill-after", `${KILL_AFTER}ms`];
      const run = new Cli(server.url, [
        "run",
        ...flags,
        name,
        "--",
        process.execPath,
        "-e",
        BEATING,
        "--",
        ...files,
      ]);
      await until(() => readTime(files[0]) > 0);
      // Anywhere between two renewals.
      await pause((i * 617) % LEASE);
      const end = Number(await redis.call("PEXPIRETIME", `holdfast:{${name}}`));
      server.suspend();
      const { code } = await run.finished;
      server.resume();
      expect(code).toBe(79);
      early?.push(end - readTime(files[0]));
      warned?.push(end - readTime(files[1]));
    }
  } finally {
    redis.disconnect();
    await server.stop();
  }
  await annotate(
    `dead ${spread(early ?? [])} ms before the end of the lease, warned ${spread(warned ?? [])} ms before it`,
  );
  expect(Math.min(...(early ?? []))).toBeGreaterThan(0);
  expect(Math.min(...(warned ?? []))).toBeGreaterThan(KILL_AFTER / 2);
});

/** 0: nothing was written yet. */
function readTime(path: string): number {
  try {
    return Number(readFileSync(path, "utf8"));
  } catch {
    return 0;
  }
}

function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return `${sorted[0]} to ${sorted.at(-1)}, median ${sorted[Math.floor(sorted.length / 2)]}`;
}
