import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Actor } from "../actor.ts";
import { RedisCluster } from "../servers/cluster.ts";
import { SentinelGroup } from "../servers/sentinel.ts";
import { Standalone } from "../servers/standalone.ts";
import { throughProxies } from "../servers/through-proxies.ts";
import type { Topology } from "../servers/topology.ts";
import { named } from "../tcp-proxy.ts";
import { until } from "../until.ts";

describe.each([
  ["standalone", () => Standalone.launch()],
  ["Sentinel", () => SentinelGroup.launch({ replicas: 1 })],
  ["Cluster", () => RedisCluster.launch()],
] as const)("%s", (kind, launch) => {
  let topology: Topology;
  beforeAll(async () => {
    topology = await launch();
  });
  afterAll(() => topology.stop());

  it("through proxies: a reply is lost, and no connection bypasses them", async () => {
    const proxied = await throughProxies(topology);
    const redis = proxied.connect();
    const key = randomUUID();
    const admin = await topology.adminOf(key);
    const proxy = proxied.proxyOf({ port: Number(admin.options.port) });
    await redis.set(key, "0");
    const dropped = proxy.dropReply(named("incr"));
    expect(await redis.incr(key)).toBe(2);
    await dropped;
    for (const one of proxied.proxies) one.freeze();
    let isAnswered = false;
    redis.incr(key).then(
      () => {
        isAnswered = true;
      },
      () => {},
    );
    for (let n = 0; n < 30; n++) await admin.ping();
    expect([isAnswered, await admin.get(key)]).toEqual([false, "2"]);
    await proxied.stop();
  });

  it("an actor reaches it, is stopped, resumes, and is killed", async () => {
    const actor = await Actor.start({ address: topology.address });
    const key = randomUUID();
    const admin = await topology.adminOf(key);
    expect(await actor.call("command", "incr", key)).toBe(1);
    actor.kill("SIGSTOP");
    let isAnswered = false;
    const answer = actor.call("command", "incr", key).then(() => {
      isAnswered = true;
    });
    for (let n = 0; n < 30; n++) await admin.ping();
    expect([isAnswered, await admin.get(key)]).toEqual([false, "1"]);
    actor.kill("SIGCONT");
    await answer;
    expect(await admin.get(key)).toBe("2");

    const others = topology.address.nodes?.length ?? 1;
    expect(others).toBe(kind === "Cluster" ? 3 : 1);
    const names = async () => String(await admin.client("LIST"));
    const named = await Actor.start({ address: topology.address, redis: { connectionName: key } });
    await named.call("command", "get", key);
    expect(await names()).toContain(key);
    named.kill();
    await named.exit;
    await until(async () => !(await names()).includes(key), { what: "its connection to be gone" });
    await actor.end();
  });
});

it("a process that dies takes its topology with it", async () => {
  const { spawn } = await import("node:child_process");
  const cluster = new URL("../servers/cluster.ts", import.meta.url).href;
  const script = `
    const { RedisCluster } = await import(${JSON.stringify(cluster)});
    const { servers } = await RedisCluster.launch();
    console.log(JSON.stringify(servers.map(({ pid, port }) => ({ pid, port }))));
    process.kill(process.pid, "SIGTERM");`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let written = "";
  for await (const chunk of child.stdout) written += chunk;
  const servers = JSON.parse(written) as { pid: number; port: number }[];
  expect(servers.length).toBe(3);
  for (const { port } of servers) {
    const redis = new Redis(port, { retryStrategy: () => null });
    redis.on("error", () => {});
    await expect(redis.ping()).rejects.toThrow();
  }
});
