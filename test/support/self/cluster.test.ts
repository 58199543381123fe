import type { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisCluster } from "../servers/cluster.ts";
import type { MoveStep } from "../servers/slot-move.ts";
import { until } from "../until.ts";

let cluster: RedisCluster;
let redis: Cluster;

beforeAll(async () => {
  cluster = await RedisCluster.launch({ replicas: 1 });
  redis = cluster.connect();
});
afterAll(() => cluster.stop());

/** A primary that does not own the key. */
const otherThan = async (key: string) => {
  const owner = await cluster.primaryOf(key);
  const [other] = (await cluster.primaries()).filter((node) => node !== owner);
  if (other === undefined) throw new Error("There is one primary only");
  return other;
};
const said = (work: Promise<unknown>): Promise<string> => work.then(String, (error) => error.message);

describe("RedisCluster", () => {
  it("spreads keys over three primaries, each with a replica in step", async () => {
    const owners = new Set<number>();
    for (const key of ["a", "b", "c", "d", "e", "f"]) {
      await redis.set(key, key);
      const owner = await cluster.primaryOf(key);
      expect(await owner.admin.get(key)).toBe(key);
      owners.add(owner.server.port);
    }
    expect(owners.size).toBe(3);
    expect((await cluster.admins()).length).toBe(6);
    for (const { admin } of await cluster.primaries()) expect(await admin.info()).toMatch(/slave0:.*online/);
    expect(await said((await otherThan("a")).admin.get("a"))).toMatch(/^MOVED/);
  });

  it("promotes the replica of a killed primary, and takes that one back as a replica", async () => {
    await redis.set("kept", "1");
    const { admin } = await cluster.primaryOf("kept");
    await admin.wait(1, 5_000);
    const { killed, promoted, took } = await cluster.killPrimaryOf("kept");
    expect([killed.server.state, promoted.server.state]).toEqual(["ended", "running"]);
    expect(took).toBeGreaterThan(500); // the others must first miss it
    expect(await redis.incr("kept")).toBe(2);
    expect(await promoted.admin.get("kept")).toBe("2");
    await expect(cluster.killPrimaryOf("kept")).rejects.toThrow("no replica");
    await cluster.restore();
    expect(await killed.admin.info("replication")).toMatch(
      new RegExp(`role:slave.*master_port:${promoted.server.port}`, "s"),
    );
  });

  it("moves a slot step by step, and clients follow", async () => {
    await redis.mset("{x}1", "1", "{x}2", "2");
    const [from, to, slot] = [
      await cluster.primaryOf("{x}"),
      await otherThan("{x}"),
      await cluster.slotOf("{x}"),
    ];
    const seen: [MoveStep, ...string[]][] = [];
    await cluster.migrateSlot(slot, to, async (step, move) => {
      seen.push([step, await said(from.admin.get("{x}1")), await said(from.admin.get("{x}new"))]);
      expect(await redis.get("{x}1")).toBe("1");
      if (step !== "opened") return;
      expect(await move.keys(1)).toBe(1);
      expect(await said(from.admin.mget("{x}1", "{x}2"))).toMatch(/^TRYAGAIN/);
      expect(await redis.set("{x}3", "3")).toBe("OK"); // at the target
    });
    const ask = `ASK ${slot} 127.0.0.1:${to.server.port}`;
    expect(seen).toEqual([
      ["opened", "1", ask],
      ["moved", ask, ask],
    ]);
    expect(await said(from.admin.get("{x}1"))).toBe(`MOVED ${slot} 127.0.0.1:${to.server.port}`);
    expect(await cluster.primaryOf(slot)).toBe(to);
    expect(await redis.mget("{x}1", "{x}2", "{x}3")).toEqual(["1", "2", "3"]);
  });

  it("is not usable while a primary is suspended, and is again when it resumes", async () => {
    const { server } = await cluster.primaryOf("a");
    expect(await cluster.isUsable()).toBe(true);
    server.suspend();
    await until(async () => !(await cluster.isUsable()), { what: "the others to miss it" });
    await cluster.usable(); // its replica has taken its place
    await cluster.restore();
    expect((await cluster.primaryOf("a")).server).not.toBe(server);
  });
});
