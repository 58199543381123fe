import { spawnSync } from "node:child_process";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { Cli } from "../support/cli.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// What `top` shows of a Redis that does not answer, as docs/page.md has it for both.

afterEach(() => Cli.endAll());

/** util-linux's `script` gives its command a terminal. */
const hasScript = /util-linux/.test(spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "");
const [RED, YELLOW, DIM] = ["\x1b[31m", "\x1b[33m", "\x1b[2m"];

/** `top` in a terminal with colours, that shows one lock. */
async function stage() {
  const server = await launchServer();
  const redis = new Redis(server.url);
  redis.on("error", () => {});
  const locks = createLockClient(redis);
  onTestFinished(async () => {
    await locks.close({ grace: 0 });
    redis.disconnect();
    await server.stop();
  });
  await locks.lock("order:42").lock({ lease: 600_000 });
  const top = Cli.inTerminal(server.url, ["top"], "unset NO_COLOR");
  await top.says("1 held, 0 waited for");
  return { server, top };
}

/** The last screen, without what moves the cursor. */
const screen = ({ stdout }: Cli): string => stdout.slice(stdout.lastIndexOf("\x1b[H"));
const shows = (top: Cli, text: RegExp) =>
  until(() => text.test(screen(top)), { what: `${text} on the screen` }).catch((error: Error) => {
    throw new Error(`${error.message}; it was:\n${screen(top)}`);
  });

/** Says since when, and why; the rows stay, and are grey. */
async function goesAway(top: Cli, why: RegExp): Promise<void> {
  await shows(top, new RegExp(`Last answer \\d+ s ago: ${why.source}`));
  const text = screen(top);
  expect(text.split("\r\n")[0]).toContain(RED);
  expect(text.split("\r\n").find((line) => line.includes("order:42"))).toContain(DIM);
  // It goes on to count while a look is under way.
  const [, seconds] = /Last answer (\d+) s ago/.exec(text) ?? [];
  await shows(top, new RegExp(`Last answer (?!${seconds} s)\\d+ s ago`));
}

describe.skipIf(!hasScript)("top", () => {
  it("shows that Redis was killed, and recovers after its restart; a top started meanwhile shows it too", async () => {
    const { server, top } = await stage();
    await server.kill();
    await goesAway(
      top,
      new RegExp(`there is no connection to Redis at 127\\.0\\.0\\.1:${server.port} \\(status \\w+`),
    );
    const { code, stdout } = await Cli.inTerminal(server.url, ["top"]).finished;
    expect({ code, stdout }).toEqual({
      code: 69,
      stdout: expect.stringContaining("connection refused (ECONNREFUSED)"),
    });
    await server.restart();
    await shows(top, /0 held, 0 waited for/);
    expect(screen(top)).not.toContain("order:42");
  });

  it("shows that Redis is suspended, and recovers when it resumes; a top started meanwhile shows it too", async () => {
    const { server, top } = await stage();
    server.suspend();
    await goesAway(top, new RegExp(`Redis at 127\\.0\\.0\\.1:${server.port} has not answered;`));
    const { code, stdout } = await Cli.inTerminal(server.url, ["top"]).finished;
    expect({ code, stdout }).toEqual({ code: 69, stdout: expect.stringMatching(/holdfast: .*127\.0\.0\.1/) });
    server.resume();
    await shows(top, /1 held, 0 waited for/);
    expect(screen(top)).toContain("order:42");
  });

  it("shows since when Redis has not answered while it is slow, without a reason, and recovers", async () => {
    const { server } = await stage();
    const proxy = await TcpProxy.start(server);
    onTestFinished(() => proxy.stop());
    const top = Cli.inTerminal(proxy.url, ["top"], "unset NO_COLOR");
    await top.says("1 held, 0 waited for");
    // Answers take 3 s, and a listing several of them. No answer fails.
    proxy.delay(1_500);
    await shows(top, /Redis is slow: a round trip takes 3\.\d s\./);
    await shows(top, /Last answer \d+ s ago(?!:)/);
    const [head = "", ...lines] = screen(top).split("\r\n");
    expect(head).toContain(YELLOW);
    expect(lines.find((line) => line.includes("order:42"))).toContain(DIM);
    proxy.delay(0);
    await shows(top, /1 held, 0 waited for/);
  });

  it("lists and force-releases while Redis is full", async () => {
    const { server, top } = await stage();
    const admin = new Redis(server.url);
    onTestFinished(() => admin.disconnect());
    await admin.config("SET", "maxmemory", "1");
    await expect(admin.set("x", "y")).rejects.toThrow(/OOM/);
    await shows(top, /Redis is full: its memory has reached maxmemory, so new calls cannot take locks\./);
    const keys = async (typed: string, said: RegExp) => {
      top.child.stdin?.write(typed);
      await shows(top, said);
    };
    await keys("b", /order:42: .*Type its name to force-release it/);
    await keys("order:42\r", /Force-released 'order:42'\./);
    await shows(top, /0 held, 0 waited for/);
    await admin.config("SET", "maxmemory", "0");
    await until(() => !screen(top).includes("Redis is full"));
  });

  it("says that it reads the locks, and how many it has, until all were read once", async () => {
    const { server } = await stage();
    const redis = new Redis(server.url);
    const locks = createLockClient(redis);
    await Promise.all(Array.from({ length: 500 }, (_, i) => locks.lock(`bulk:${i}`).lock()));
    const proxy = await TcpProxy.start(server);
    onTestFinished(async () => {
      await proxy.stop();
      await locks.close({ grace: 0 });
      redis.disconnect();
    });
    proxy.delay(150);
    const top = Cli.inTerminal(proxy.url, ["top"]);
    await top.says("Reading the locks …");
    await shows(top, /Reading the locks … \d+ so far/);
    proxy.delay(0);
    await shows(top, /501 held, 0 waited for/);
    expect(top.stdout).not.toMatch(/(?<!\d)\d{1,2} held/);
  });
});
