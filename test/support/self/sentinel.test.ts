import { connect } from "node:net";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SentinelGroup } from "../servers/sentinel.ts";

let group: SentinelGroup;
let redis: Redis;

beforeAll(async () => {
  group = await SentinelGroup.launch({ replicas: 2 });
  redis = group.connect();
});
afterAll(() => group.stop());

const portOf = (client: Redis): unknown =>
  (client as unknown as { stream: { remotePort: number } }).stream.remotePort;

describe("SentinelGroup", () => {
  it("connects to the primary, which two replicas copy", async () => {
    await redis.set("key", "1");
    const primary = await group.primary();
    expect(portOf(redis)).toBe(primary.port);
    expect(await redis.wait(2, 5_000)).toBe(2);
    const [first, ...replicas] = await group.admins();
    expect(await first?.info("replication")).toContain("connected_slaves:2");
    for (const replica of replicas) await expect(replica.set("key", "2")).rejects.toThrow("READONLY");
    expect(replicas.length).toBe(2);
  });

  it("promotes a replica in the place of a killed primary, and takes that one back", async () => {
    await redis.set("key", "1");
    await redis.wait(2, 5_000);
    const { from, to, took } = await group.killPrimary();
    expect(took).toBeGreaterThan(500); // the sentinels must first miss it
    expect([from.state, to.state, await group.primary()]).toEqual(["ended", "running", to]);
    expect([await redis.incr("key"), portOf(redis)]).toEqual([2, to.port]);
    await group.restore();
    expect(await group.admin(from).get("key")).toBe("2");
    await expect(group.admin(from).set("key", "3")).rejects.toThrow("READONLY");
  });

  it("fails over on request, while the primary is healthy", async () => {
    const { from, to } = await group.failover();
    expect([from.state, to === from]).toEqual(["running", false]);
    expect([await redis.get("key"), portOf(redis)]).toEqual(["2", to.port]);
    await expect(group.admin(from).set("key", "3")).rejects.toThrow("READONLY");
  });

  it("stops everything", async () => {
    await group.stop();
    const refused = (port: number) =>
      new Promise((resolve) =>
        connect(port, "127.0.0.1")
          .once("error", resolve)
          .once("connect", () => resolve("open")),
      );
    for (const server of [...group.servers, ...group.sentinels]) {
      expect(server.state).toBe("ended");
      expect(await refused(server.port)).toMatchObject({ code: "ECONNREFUSED" });
    }
  });
});
