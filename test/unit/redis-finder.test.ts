import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it, vi } from "vitest";
import { findRedis, type LocalServer, launchServer, serverCommand } from "../../tools/redis/index.ts";
import { withoutServices } from "../../tools/redis/install.ts";
import { compiled } from "../support/compiled.ts";

/** Everything a test launched or opened; a test that fails half-way leaves nothing behind either. */
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function launch(options?: Parameters<typeof launchServer>[0]): Promise<LocalServer> {
  const server = await launchServer(options);
  cleanups.push(() => server.stop());
  return server;
}

function connectTo(server: { url: string }): Redis {
  const redis = new Redis(server.url, { retryStrategy: (times) => Math.min(times, 20) });
  redis.on("error", () => {});
  cleanups.push(() => redis.disconnect());
  return redis;
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-test-"));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** What happens to somebody who connects to this port: "connected", or the error's code. */
function knock(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve("connected"));
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on("connect", () => socket.destroy());
  });
}

/** Is there a process with this id? A zombie, which nobody has waited for yet, counts as gone. */
async function runs(pid: number): Promise<boolean> {
  if (process.platform !== "linux") return isKnown(pid);
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => null);
  return status !== null && !/^State:\s+Z/m.test(status);
}

function isKnown(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("findRedis", () => {
  it("uses REDIS_URL, and does not stop that server", async () => {
    const server = await launch();
    vi.stubEnv("REDIS_URL", server.url);
    const found = await findRedis();
    expect(found).toMatchObject({ url: server.url, host: "127.0.0.1", port: server.port });
    await found.stop();
    expect(await connectTo(found).ping()).toBe("PONG");
  });

  it.each([
    ["redis://cache.example", "cache.example", 6379],
    ["rediss://user:secret@cache.example:7000/3", "cache.example", 7000],
    ["redis://[::1]:6380", "::1", 6380],
  ])("reads host and port of %s", async (url, host, port) => {
    vi.stubEnv("REDIS_URL", url);
    expect(await findRedis()).toMatchObject({ url, host, port });
  });

  it.each(["localhost:6379", "http://localhost", "nonsense"])("refuses REDIS_URL=%s", async (url) => {
    vi.stubEnv("REDIS_URL", url);
    await expect(findRedis()).rejects.toThrow(`redis://host:port, received '${url}'`);
  });

  it("launches a private server with the given arguments, and stops it", async () => {
    vi.stubEnv("REDIS_URL", "");
    const server = await findRedis({ args: ["--maxmemory", "50mb"] });
    cleanups.push(() => server.stop());
    expect(await connectTo(server).config("GET", "maxmemory")).toContain(`${50 * 1024 * 1024}`);
    await server.stop();
    expect(await knock(server.port)).toBe("ECONNREFUSED");
  });

  it("names every way when there is none", async () => {
    vi.stubEnv("REDIS_URL", "");
    vi.stubEnv("PATH", "");
    vi.stubEnv("HOLDFAST_NO_INSTALL", "1");
    expect(serverCommand()).toBeNull();
    const refusal = findRedis({ say: () => expect.unreachable("nothing may be installed") });
    for (const way of [
      "REDIS_URL=redis://",
      "redis-server or valkey-server on the PATH",
      "Docker",
      "apt-get",
    ])
      await expect(refusal).rejects.toThrow(way);
  });
});

describe("launchServer", () => {
  it("stops: the port refuses and the folder is gone", async () => {
    const server = await launch();
    expect(await connectTo(server).ping()).toBe("PONG");
    await server.stop();
    await server.stop();
    expect(await knock(server.port)).toBe("ECONNREFUSED");
    expect(existsSync(server.dir)).toBe(false);
    await expect(server.restart()).rejects.toThrow("stopped");
  });

  it("listens on the loopback interface only, and persists nothing", async () => {
    const redis = connectTo(await launch());
    expect(await redis.config("GET", "bind")).toContain("127.0.0.1");
    expect(await redis.config("GET", "save")).toContain("");
    expect(await redis.config("GET", "appendonly")).toContain("no");
    expect(await redis.config("GET", "protected-mode")).toContain("yes");
  });

  it("kill and restart: the same port, another process, and no data", async () => {
    const server = await launch();
    const { pid, port } = server;
    const redis = connectTo(server);
    await redis.set("key", "value");
    await server.kill();
    expect(await runs(pid)).toBe(false);
    expect(await knock(port)).toBe("ECONNREFUSED");
    await server.restart();
    expect(server.port).toBe(port);
    expect(server.pid).not.toBe(pid);
    expect(await redis.dbsize()).toBe(0);
  });

  it("stops a suspended server", async () => {
    const server = await launch();
    process.kill(server.pid, "SIGSTOP");
    await server.stop();
    expect(await runs(server.pid)).toBe(false);
  });

  it("launches many at once, each on its own port", async () => {
    const servers = await Promise.all(Array.from({ length: 8 }, () => launch()));
    expect(new Set(servers.map((server) => server.port)).size).toBe(8);
  });

  it("keeps a folder that was given", async () => {
    const dir = await temporaryFolder();
    const server = await launch({ dir });
    expect(server.dir).toBe(dir);
    await server.stop();
    expect(existsSync(join(dir, "server.log"))).toBe(true);
  });

  it("reports that the wanted port is taken", async () => {
    const taken = await launch();
    await expect(launchServer({ port: taken.port })).rejects.toThrow(`Port ${taken.port} is already in use`);
  });

  it("recognizes another process on the port", async () => {
    const stranger = createServer((socket) => socket.end("+PONG\r\n")).listen(0, "127.0.0.1");
    cleanups.push(() => stranger.close());
    await new Promise((listening) => stranger.once("listening", listening));
    const address = stranger.address();
    const port = typeof address === "object" ? address?.port : undefined;
    await expect(launchServer({ port: port ?? 0 })).rejects.toThrow("already in use");
  });

  it("shows the end of the log when the server refuses its arguments", async () => {
    await expect(launchServer({ args: ["--no-such-setting", "1"] })).rejects.toThrow(/no-such-setting/);
  });

  it("waits for a server with a password as well", async () => {
    const server = await launch({ args: ["--requirepass", "secret"] });
    await expect(connectTo(server).ping()).rejects.toThrow("NOAUTH");
  });
});

describe("the end of the process that launched a server", () => {
  const LAUNCH = `
    const { launchServer } = await import("./tools/redis/index.ts");
    const server = await launchServer();
    console.log(JSON.stringify({ pid: server.pid, dir: server.dir }));`;

  const STAY = "setInterval(() => {}, 1_000);";

  /** Exits with 42 if the server still answers when the signal has been heard. */
  const LISTEN_ONCE = `
    process.once("SIGTERM", async () => {
      const { answers } = await import("./tools/redis/probe.ts");
      process.exit((await answers(server.port, server.pid)) ? 42 : 1);
    });`;

  /** Runs the script in a process of its own; returns its servers and how it ended. */
  async function runScript(script: string, signal?: NodeJS.Signals) {
    const child = spawn(process.execPath, [compiled(script)], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    cleanups.push(() => child.kill("SIGKILL"));
    const exit = new Promise((resolve) => child.once("exit", (code, by) => resolve(by ?? code)));
    let written = "";
    for await (const chunk of child.stdout) {
      written += chunk;
      if (signal && written.includes("\n")) child.kill(signal);
    }
    return { ...(JSON.parse(written) as { pid: number; dir: string }), end: await exit };
  }

  it.each([
    ["when nothing is left to do", LAUNCH, undefined, 0],
    ["on process.exit", `${LAUNCH} process.exit(3);`, undefined, 3],
    ["on an uncaught error", `${LAUNCH} throw new Error("boom");`, undefined, 1],
    ["on SIGINT", LAUNCH + STAY, "SIGINT", expect.anything()],
    ["on SIGTERM", LAUNCH + STAY, "SIGTERM", expect.anything()],
    ["not before its own listener is done", LISTEN_ONCE + LAUNCH + STAY, "SIGTERM", 42],
  ] as const)("ends the server and removes its folder %s", async (_when, script, signal, ending) => {
    const { pid, dir, end } = await runScript(script, signal);
    expect(end).toEqual(ending);
    await vi.waitUntil(async () => !(await runs(pid)), { timeout: 5_000 });
    expect(existsSync(dir)).toBe(false);
  });
});

describe("withoutServices", () => {
  it("forbids services during the body only", async () => {
    const policy = join(await temporaryFolder(), "policy-rc.d");
    await withoutServices(policy, async () => {
      expect((await stat(policy)).mode & 0o777).toBe(0o755);
      expect(await readFile(policy, "utf8")).toContain("exit 101");
    });
    expect(existsSync(policy)).toBe(false);
    await expect(withoutServices(policy, () => Promise.reject(new Error("apt")))).rejects.toThrow("apt");
    expect(existsSync(policy)).toBe(false);
  });

  it("keeps an existing policy", async () => {
    const policy = join(await temporaryFolder(), "policy-rc.d");
    await writeFile(policy, "#!/bin/sh\nexit 0\n");
    await withoutServices(policy, async () => {});
    expect(await readFile(policy, "utf8")).toBe("#!/bin/sh\nexit 0\n");
  });
});
