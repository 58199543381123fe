import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";

/** What the Redis in memory has run, and when, in the tests of one lock kind in virtual time. */
async function run(seed: number): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-exactness-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const env = {
    ...process.env,
    HOLDFAST_SEED: `${seed}`,
    HOLDFAST_TRACE: join(folder, "trace"),
  };
  const args = ["vitest", "run", "--project=default, virtual time", "-t", "^fairLock on"];
  await promisify(execFile)("npx", [...args, "test/contract/virtual-time.test.ts"], { env });
  return (await readFile(env.HOLDFAST_TRACE, "utf8")).trim().split("\n");
}

it("two runs in virtual time have the same events at the same times, and another seed has others", async () => {
  const [one, same, other] = await Promise.all([run(1), run(1), run(2)]);
  expect(one.length).toBeGreaterThan(3_000);
  expect(one.findIndex((line, i) => line !== same[i])).toBe(-1);
  expect(same.length).toBe(one.length);
  expect(other).not.toEqual(one);
}, 300_000);
