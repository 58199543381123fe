import type { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { decodeMessage } from "../../src/redis/messages.ts";
import { CountedCalls } from "../support/counted-calls.ts";
import { freshName } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { until } from "../support/until.ts";

it("in a Cluster the keys of a counted resource share a slot, and its grants are sharded messages; and once runs there", async () => {
  const cluster = await RedisCluster.launch();
  onTestFinished(() => cluster.stop());
  const connection = cluster.connect();
  for (const name of [freshName(), freshName("{tag} of many"), freshName("é")]) {
    const calls = new CountedCalls(connection, name);
    const { hash } = calls.commands.keys.ofCounted("semaphore", name);
    const admin = await cluster.adminOf(hash);
    const ears = admin.duplicate() as Redis;
    const heard: string[] = [];
    ears.on("smessage", (_, message: string) => heard.push(message));
    await ears.ssubscribe(calls.channelOf("a"));
    const [holder, waiter] = [calls.hold("a"), calls.hold("a")];
    expect(await calls.attempt(holder, { units: 5, upTo: 5 })).toMatchObject({ is: "owner" });
    expect(await calls.attempt(waiter, {})).toMatchObject({ is: "held", position: 0 });
    await calls.release(holder);
    await until(() => heard.length > 0);
    expect(decodeMessage(heard[0] ?? "")).toMatchObject({ hold: waiter.id, key: hash });
    expect(await calls.semaphore.setPermits(name, 9)).toMatchObject({ is: "released", used: 1 });
    expect(await calls.semaphore.forceRelease(name, null, { holder: null, token: null })).toBe(1);
    await until(() => heard.length > 1);
    ears.disconnect();
    calls.end();
    const locks = createLockClient(connection);
    const given = { every: 60_000, lease: 1_500 };
    const body = async ({ held }: { held: boolean }) => {
      let renewals = 0;
      locks.on("renew", () => renewals++);
      await until(() => renewals > 0);
      return held;
    };
    expect(await locks.runOnce(name, given, body)).toEqual({ ran: true, value: true });
    expect(await locks.runOnce(name, given, body)).toMatchObject({ ran: false, running: false });
    await locks.close();
  }
});
