import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterEach, expect, it } from "vitest";
import { isInTime } from "../../tools/machine.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { Cli, temporary } from "../support/cli.ts";
import { freshName } from "../support/fixture.ts";
import { freezeEndOf, unpauseClients } from "../support/server-pauses.ts";
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

/** ms before the end of the lease. */
interface Loss {
  readonly dead: number;
  readonly warned: number;
}

/** Takes Redis away so many ms after the command has begun. */
async function lose(server: LocalServer, redis: Redis, after: number): Promise<Loss> {
  const name = freshName();
  const [beats, signals] = ["beats", "signals"].map((file) => join(temporary(), file)) as [string, string];
  const flags = ["--lease", `${LEASE}ms`, "--kill-after", `${KILL_AFTER}ms`];
  const command = [process.execPath, "-e", BEATING, "--", beats, signals];
  const run = new Cli(server.url, ["run", ...flags, name, "--", ...command]);
  await until(() => readTime(beats) > 0);
  await pause(after);
  const end = await freezeEndOf(`holdfast:{${name}}`, redis);
  server.suspend();
  const { code } = await run.finished;
  server.resume();
  await unpauseClients(redis);
  expect(code).toBe(79);
  return { dead: end - readTime(beats), warned: end - readTime(signals) };
}

it(`a command is dead before its lease ends, ${LOSSES} times`, {
  timeout: 60_000 + LOSSES * 30_000,
}, async ({ annotate, skip }) => {
  const server = await launchServer();
  const redis = new Redis(server.url);
  const losses: Loss[] = [];
  try {
    for (let i = 0; i < LOSSES; i++) {
      // Anywhere between two renewals.
      const round = async (): Promise<boolean> => {
        const loss = await lose(server, redis, (i * 617) % LEASE);
        losses.push(loss);
        return loss.dead > 0 && loss.warned > KILL_AFTER / 2;
      };
      expect(await isInTime(round, skip), JSON.stringify(losses)).toBe(true);
    }
  } finally {
    redis.disconnect();
    await server.stop();
  }
  const [dead, warned] = [losses.map((loss) => loss.dead), losses.map((loss) => loss.warned)];
  await annotate(
    `dead ${spread(dead)} ms before the end of the lease, warned ${spread(warned)} ms before it`,
  );
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
