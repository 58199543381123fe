import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { redisInContainer } from "../../tools/redis/container.ts";
import type { RedisServer } from "../../tools/redis/index.ts";

/** "connected", or the code of the error. */
function knock(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => resolve("connected"));
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on("connect", () => socket.destroy());
  });
}

describe.runIf(process.env.TEST_REDIS === "container")("redisInContainer", () => {
  const said: string[] = [];
  let server: RedisServer;

  beforeAll(async () => {
    server = await redisInContainer({ args: ["--maxmemory", "50mb"], say: (line) => void said.push(line) });
  });
  afterAll(() => server.stop());

  it("answers at its address, with the given arguments and without persistence", async () => {
    const redis = new Redis(server.url);
    expect(await redis.config("GET", "maxmemory")).toContain(`${50 * 1024 * 1024}`);
    expect(await redis.config("GET", "save")).toContain("");
    expect(await redis.config("GET", "appendonly")).toContain("no");
    redis.disconnect();
    expect(server.url).toBe(`redis://${server.host}:${server.port}`);
  });

  it("prints in one line what it starts", () => {
    expect(said).toEqual([
      expect.stringMatching(/^Starting a Redis in a container of the image \S+ \.\.\.$/),
    ]);
  });

  it("is published on the loopback interface only", async () => {
    if (server.host !== "127.0.0.1") return;
    const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    const ours = addresses.filter(({ internal, family }) => !internal && family === "IPv4");
    for (const { address } of ours) expect(await knock(address, server.port)).toBe("ECONNREFUSED");
  });

  it("stops, and may be stopped twice", async () => {
    await server.stop();
    await server.stop();
    expect(await knock(server.host, server.port)).toBe("ECONNREFUSED");
  });

  it.each(["SIGINT", "SIGKILL"] as const)("ends with the process that started it, on %s", async (signal) => {
    const module = new URL("../../tools/redis/container.ts", import.meta.url).href;
    const script = `
      const { redisInContainer } = await import(${JSON.stringify(module)});
      console.log(JSON.stringify(await redisInContainer({ say: () => {} })));
      setInterval(() => {}, 1_000);`;
    const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const { host, port } = JSON.parse(line.toString()) as RedisServer;
    expect(await knock(host, port)).toBe("connected");
    child.kill(signal);
    await vi.waitUntil(async () => (await knock(host, port)) === "ECONNREFUSED", { timeout: 10_000 });
  });

  it("reports why the server did not start", async () => {
    const refused = redisInContainer({ args: ["--no-such-setting", "1"], say: () => {} });
    await expect(refused).rejects.toThrow("could be started");
  });

  it("reports which image is not available", async () => {
    vi.stubEnv("TEST_REDIS_IMAGE", "localhost:1/no-such-image:none");
    try {
      await expect(redisInContainer({ say: () => {} })).rejects.toThrow("localhost:1/no-such-image:none");
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
