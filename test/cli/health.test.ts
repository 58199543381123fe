import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { Cli } from "../support/cli.ts";
import { Parties } from "../support/fixture.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

// ls, inspect and top say on stderr that Redis is full or slow, and list the locks all the same.

const parties = new Parties();
let server: LocalServer;
let admin: Redis;

beforeAll(async () => {
  server = await launchServer();
  admin = new Redis(server.url);
  const { locks } = await parties.join({ url: server.url });
  await locks.lock("order:42").lock({ lease: 600_000 });
  // Beside that, what the connections of a command need is little.
  await admin.setrange("data", 50_000_000, "x");
});
afterEach(async () => {
  await Cli.endAll();
  await admin.config("SET", "maxmemory", "0");
});
afterAll(async () => {
  await parties.close();
  admin.disconnect();
  await server.stop();
});

/** Sets the percent of `maxmemory` in use. */
async function fill(percent: number): Promise<void> {
  const [, used] = /^used_memory:(\d+)/m.exec(await admin.info("memory")) ?? [];
  await admin.config("SET", "maxmemory", String(Math.round((100 * Number(used)) / percent)));
}

const FULL = "holdfast: Redis is full: its memory has reached maxmemory, so new calls cannot take locks.\n";

it.each([
  ["ls", /^NAME .*\norder:42 .*\n$/],
  ["ls nothing:*", /^$/],
  ["inspect order:42", /^order:42 \(lock\)\n {2}held for /],
  ["inspect nothing", /^nothing is free /],
  ["top", /^order:42\tlock\t/],
])("%s says that Redis is full", async (line, listed) => {
  await fill(110);
  const { code, stdout, stderr } = await new Cli(server.url, line.split(" ")).finished;
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: expect.stringMatching(listed),
    stderr: expect.stringContaining(FULL),
  });
});

it("says that Redis is nearly full", async () => {
  await fill(95);
  const { stderr } = await new Cli(server.url, ["ls"]).finished;
  expect(stderr).toMatch(/Redis is nearly full: 9\d % of maxmemory is in use/);
});

it("says nothing of the memory where the user may not run INFO", async () => {
  await admin.call("ACL", "SETUSER", "poor", "on", ">sesame", "~*", "&*", "+@all", "-info");
  await fill(110);
  const url = server.url.replace("://", "://poor:sesame@");
  const { code, stderr } = await new Cli(url, ["ls"]).finished;
  expect(code).toBe(0);
  expect(stderr).not.toContain("full");
});

it("says how slow Redis is, and a listing that fails for it has 69", async () => {
  const proxy = await TcpProxy.start(server);
  onTestFinished(() => proxy.stop());
  proxy.delay(100);
  const { code, stdout, stderr } = await new Cli(proxy.url, ["ls"]).finished;
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("order:42") });
  const [, ms] = /Redis is slow: a round trip takes (\d+) ms\./.exec(stderr) ?? [];
  expect(Number(ms)).toBeGreaterThanOrEqual(200);
  // Its client waits 5 s for an answer.
  proxy.delay(2_000);
  const late = await new Cli(proxy.url, ["ls"]).finished;
  expect(late).toMatchObject({ code: 69, stdout: "" });
  expect(late.stderr).toMatch(
    /Redis is slow: (its first answer took|no answer for) [\d.]+ s\.\n.*could not be listed/s,
  );
});

it("doctor does not blame messages for a Redis that is too slow to measure hand-offs", async () => {
  const proxy = await TcpProxy.start(server);
  onTestFinished(() => proxy.stop());
  proxy.delay(400);
  const { code, stdout } = await new Cli(proxy.url, ["doctor"]).finished;
  expect(code).toBe(69);
  expect(stdout).toMatch(/✘ A round trip takes \d{3,} ms: put Redis nearer/);
  expect(stdout).toContain("? Hand-offs were not measured: Redis was too slow for them");
  expect(stdout).not.toContain("SUBSCRIBE");
});
