import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";
import { Parties, testUrl } from "../support/fixture.ts";

// npm run demo: the locks that are wrong on purpose, and the one that is not.

const parties = new Parties();
afterAll(parties.close);

const root = fileURLToPath(new URL("../..", import.meta.url));
/** The demo is told to be honest: on a machine that is too busy, a damage may fail to happen. */
const OR_NOT = "did not happen this time";

it("shows three damages and no other, ends, and leaves nothing in Redis", { timeout: 240_000 }, async () => {
  const { redis } = await parties.join();
  const strategies = "setnx-expire,get-del,no-owner,hand-off";
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", "demo/index.ts", "--no-stop", "--driver", "node-redis", "--strategy", strategies],
    { cwd: root, env: { ...process.env, REDIS_URL: testUrl() } },
  );
  const [, ofSetnx = "", ofGet = "", ofOwner = "", ofLock = ""] = stdout
    .replace(/\n {2,}/g, " ")
    .split(/^(?:setnx-expire|get-del|no-owner|hand-off)/m);
  expect(ofSetnx).toMatch(new RegExp(`✗ Nobody can sell any more, .*PTTL says -1|${OR_NOT}`));
  expect(ofGet).toMatch(new RegExp(`✗ Oversold by \\d+: |${OR_NOT}`));
  expect(ofOwner).toMatch(new RegExp(`✗ Oversold by \\d+: |${OR_NOT}`));
  expect(ofLock).toContain("✓ All 200 pieces were sold, and none twice");
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThan(80);
  expect(await redis.keys("holdfast-demo:*")).toEqual([]);
});
