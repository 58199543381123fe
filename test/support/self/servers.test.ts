import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openConnection } from "../servers/connection.ts";
import { topologies } from "../servers/kinds.ts";
import { Standalone } from "../servers/standalone.ts";
import { launchTls } from "../servers/tls.ts";
import type { Topology } from "../servers/topology.ts";
import { addUser } from "../servers/users.ts";
import { until } from "../until.ts";

describe.each(topologies)("$name", ({ name, launch }) => {
  let topology: Topology;
  beforeAll(async () => {
    topology = await launch();
  });
  afterAll(() => topology.stop());

  it("is of the stated kind", async () => {
    const connection = topology.connect();
    const expected = name.includes("ioredis 5") ? [Redis5, Cluster5] : [Redis, Cluster];
    expect(connection).toBeInstanceOf(expected[name.startsWith("Cluster") ? 1 : 0]);
    const protocol = name.includes("RESP2") || name.includes("ioredis 5") ? 2 : 3;
    expect(String(await connection.call("CLIENT", "INFO"))).toContain(`resp=${protocol}`);
    expect(topology.name).toBe(name);
  });

  it("keeps a key that its admin sees, and sends messages", async () => {
    const [writer, reader] = [topology.connect(), topology.connect()];
    const key = randomUUID();
    await writer.set(key, "value", "PX", 60_000);
    const inRedis = name.includes("key prefix") ? `app:${key}` : key;
    const admin = await topology.adminOf(inRedis);
    expect(await admin.get(inRedis)).toBe("value");
    expect(await topology.admins()).toContain(admin);

    const messages: string[] = [];
    reader.on("message", (_, message) => messages.push(message));
    await reader.subscribe(key);
    await until(async () => (await writer.publish(key, "hello")) > 0 || messages.length > 0);
    await until(() => messages.includes("hello"));
  });

  it("can be reached by its address alone, and that can be sent", async () => {
    const connection = openConnection(structuredClone(topology.address));
    expect(await connection.ping()).toBe("PONG");
    connection.disconnect();
  });

  it("closes all its connections", async () => {
    const connection = topology.connect();
    await connection.ping();
    const [admin] = await topology.admins();
    // Not the status: a Cluster that has ended says "close" when its last node has closed after that.
    const ended = [connection, admin].map((one) => one && once(one, "end"));
    await topology.stop();
    await topology.stop();
    await Promise.all(ended);
  });
});

it("TLS: no client connects without the authority, or without TLS", async () => {
  const secure = await launchTls();
  const { port } = secure.address.redis;
  const attempt = (options: object) =>
    new Promise<string>((resolve) => {
      const redis = new Redis({ host: "127.0.0.1", port: port ?? 0, retryStrategy: () => null, ...options });
      redis.on("error", (error) => resolve(error.message));
      redis.ping().then(resolve, () => resolve("refused"));
    });
  const copy = secure.connect().duplicate();
  expect(await copy.ping()).toBe("PONG");
  copy.disconnect();
  expect(await attempt({ tls: {} })).toMatch(/self-signed|unable to verify/);
  expect(await attempt({})).not.toBe("PONG");
  await secure.server?.restart();
  expect(await secure.connect().ping()).toBe("PONG");
  await secure.stop();
});

it("a user may do what its rules allow", async () => {
  const standalone = await Standalone.launch();
  const user = await addUser(standalone, "~orders:*", "+@all", "-publish");
  const redis = standalone.connect(user);
  expect(await redis.acl("WHOAMI")).toBe(user.username);
  expect(await redis.set("orders:1", "1")).toBe("OK");
  await expect(redis.set("others:1", "1")).rejects.toThrow("NOPERM");
  await expect(redis.publish("a", "1")).rejects.toThrow("NOPERM");
  await expect(standalone.connect({ ...user, password: "wrong" }).ping()).rejects.toThrow();
  await standalone.stop();
});
