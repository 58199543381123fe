import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { Duet } from "../support/duet.ts";
import { clientOf, grant, guesses } from "../support/forger.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { addUser } from "../support/servers/users.ts";
import { timed } from "../support/stage.ts";

// The same in a Cluster, where grants are sharded messages: a user that may only publish and list channels.

staysQuiet();
let cluster: RedisCluster;
let duet: Duet;

beforeAll(async () => {
  cluster = await RedisCluster.launch();
});
beforeEach(async () => {
  duet = await Duet.of(() => cluster.connect(), { isCluster: true });
});
afterEach(async () => {
  await duet.end();
});
afterAll(() => cluster.stop());

it("a forged grant or revocation on sharded channels changes nothing and delays no caller", async () => {
  const { lock, holder, waiter } = duet;
  await duet.expectMessages(); // both listen
  const held = await holder.locks.lock(lock.name).lock();
  const waiting = waiter.locks.lock(lock.name).lock({ lease: 60_000 });
  await lock.queued(1);
  const user = await addUser(
    cluster,
    "~other:*",
    "&*",
    "+spublish",
    "+pubsub|shardchannels",
    "+cluster|slots",
  );
  const admin = await cluster.adminOf(lock.keys.lock);
  const forger = admin.duplicate({ ...user, enableReadyCheck: false, disableClientInfo: true }) as Redis;
  try {
    const channels = (await forger.call("PUBSUB", "SHARDCHANNELS", "holdfast:client:*")) as string[];
    const isWaiters = (channel: string) => clientOf(channel) === waiter.locks.id;
    expect(channels.filter(isWaiters)).toHaveLength(1);
    for (const channel of channels)
      for (const hold of guesses(clientOf(channel))) {
        await forger.spublish(channel, grant(lock.keys.lock, hold));
        await forger.spublish(channel, `revoked ${hold} ${lock.keys.lock}`);
      }
  } finally {
    forger.disconnect();
  }
  let isReleased = false;
  const order = waiting.then(() => isReleased);
  await lock.lookedAt();
  expect(held.held).toBe(true);
  isReleased = true;
  await held.unlock();
  const [lease, waited] = await timed(waiting);
  const token = Number((await waiter.redis.get(lock.keys.lock))?.split(" ")[1]);
  expect([await order, lease.token, lease.held]).toEqual([true, token, true]);
  expect(waited).toBeLessThan(350);
  await lease.unlock();
});
