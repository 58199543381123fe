import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Keys } from "../../src/redis/keys.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { until } from "../support/until.ts";

// Commands that a node of a Cluster gets long before it executes them.

const REPLY_TIMEOUT = 1_500;
const parties = new Parties();
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.launch();
});
afterAll(async () => {
  await parties.close();
  await cluster.stop();
});

it("a node that was suspended gives no lock to a process that has died meanwhile, whichever slots it had used", async () => {
  const party = await parties.join({
    connect: () => cluster.connect(),
    client: { replyTimeout: REPLY_TIMEOUT },
  });
  const keys = new Keys("", true);
  const keyOf = (name: string): string => keys.of(name).lock;
  const primary = await cluster.primaryOf(keyOf(freshName()));
  const names: string[] = [];
  while (names.length < 80) {
    const name = freshName("ghost");
    if ((await cluster.primaryOf(keyOf(name))) === primary) names.push(name);
  }
  const [used, fresh] = [names.slice(0, 20), names.slice(20)];
  for (const name of used) await (await party.locks.lock(name).lock()).unlock();

  primary.server.suspend();
  const calls = fresh.map((name) =>
    party.locks
      .lock(name)
      .tryLock()
      .catch((error: unknown) => error),
  );
  await delay(50); // they are written to the socket
  party.redis.disconnect(); // as when the process is killed: nothing takes them back
  await delay(2 * REPLY_TIMEOUT); // they are too late from now on
  primary.server.resume();
  await Promise.all(calls);

  const admin = await cluster.adminOf(keyOf(names[0] ?? ""));
  await until(() => admin.ping());
  const owned = await Promise.all(fresh.map((name) => admin.exists(keyOf(name))));
  expect(owned.filter((one) => one === 1)).toHaveLength(0);
});
