import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { Cli } from "../support/cli.ts";
import { GROUP, sentinelOptions } from "../support/servers/sentinel-setup.ts";

// A Redis that is silent, one that restarts, and one that is full.

/** Well below the time in which a command gives up that waits for an answer, which is 5 s. */
const AT_ONCE = 4_000;
let [server, sentinel] = [] as LocalServer[] as [LocalServer, LocalServer];

beforeAll(async () => {
  server = await launchServer();
  sentinel = await launchServer(sentinelOptions({ primaryPort: server.port, quorum: 1, downAfter: 60_000 }));
});
afterEach(() => Cli.endAll());
afterAll(async () => {
  await sentinel.stop();
  await server.stop();
});

/** Accepts connections, and answers what that makes of each chunk: nothing. */
async function listening(answer: (text: string) => string): Promise<{ url: string; server: Server }> {
  const fake = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => socket.write(answer(String(chunk))));
  });
  fake.listen(0, "127.0.0.1");
  await once(fake, "listening");
  return { url: `redis://127.0.0.1:${(fake.address() as AddressInfo).port}`, server: fake };
}

describe("beside an address that accepts connections and never answers", () => {
  it("another address is enough, and does not delay the exit", async () => {
    const silent = await listening(() => "");
    const args = ["run", "--sentinel", GROUP, "x", "--", "echo", "ran"];
    const { finished } = new Cli(`${silent.url},${sentinel.url}`, args);
    await once(silent.server, "connection");
    const since = performance.now();
    const { code, stdout } = await finished;
    expect({ code, stdout }).toEqual({ code: 0, stdout: "ran\n" });
    expect(performance.now() - since).toBeLessThan(AT_ONCE);
    silent.server.close();
  });

  it.each([
    ["run", ["x", "--", "true"], `"outcome":"interrupted"`],
    ["elect", ["x", "--", "true"], `"outcome":"interrupted"`],
    ["ui", ["--port", "0"], ""],
  ])("a signal ends %s", async (how, args, said) => {
    const silent = await listening(() => "");
    const run = new Cli(silent.url, [how, "--json", ...args]);
    await once(silent.server, "connection");
    const since = performance.now();
    run.kill("SIGINT");
    const { code, signal, stderr } = await run.finished;
    expect({ code, signal }).toEqual({ code: 130, signal: "SIGINT" });
    expect(stderr).toContain(said);
    expect(performance.now() - since).toBeLessThan(AT_ONCE);
    silent.server.close();
  });
});

it("a run behind sentinels uses the database number on the primary", async () => {
  const args = ["run", "--sentinel", GROUP, "x", "--", "true"];
  const { code, stderr } = await new Cli(`${sentinel.url}/99999`, args).finished;
  expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining("refuses database 99999") });
});

describe("a Redis that restarts", () => {
  it.each([
    ["run --wait 1m", ["run", "--wait", "1m"]],
    ["run --redis-wait 1m --every 1h", ["run", "--redis-wait", "1m", "--every", "1h"]],
    ["elect --redis-wait 1m", ["elect", "--redis-wait", "1m"]],
  ])("makes %s wait for it", async (_, args) => {
    await server.kill();
    const run = new Cli(server.url, [...args, "x", "--", "echo", "ran"]);
    await run.says("connection refused (ECONNREFUSED); trying again for ");
    await server.restart();
    expect(await run.finished).toMatchObject({ code: 0, stdout: "ran\n" });
  });

  it("is waited for no longer than the time given", async () => {
    const { code, stderr } = await new Cli("redis://127.0.0.1:1", ["run", "-w", "600ms", "x", "--", "true"])
      .finished;
    expect(code).toBe(69);
    expect(stderr.match(/connection refused/g)).toHaveLength(2);
  });

  it("is waited for while it loads its data; otherwise a run reports it at once", async () => {
    const loading = await listening((text) =>
      "-LOADING Redis is loading the dataset in memory\r\n".repeat(text.match(/^\*/gm)?.length ?? 0),
    );
    const { code, stderr } = await new Cli(loading.url, ["ls"]).finished;
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining("(LOADING)") });
    const waiting = new Cli(loading.url, ["run", "-w", "1m", "x", "--", "true"]);
    await waiting.says("(LOADING); trying again");
    waiting.kill("SIGTERM");
    expect((await waiting.finished).code).toBe(143);
    loading.server.close();
  });
});

it("a full Redis is reported in a sentence that says what to do, with Redis's own words after it", async () => {
  const full = await launchServer({ args: ["--maxmemory", "1"] });
  try {
    for (const line of ["doctor", "run x -- true", "run --slots 2 x -- true", "elect x -- true"]) {
      const { code, stdout, stderr } = await new Cli(full.url, line.split(" ")).finished;
      expect({ line, code, said: stdout + stderr }).toEqual({
        line,
        code: 69,
        said: expect.stringMatching(/Redis is full \(maxmemory\) .*: raise maxmemory, .* \(.*OOM command/),
      });
    }
  } finally {
    await full.stop();
  }
});
