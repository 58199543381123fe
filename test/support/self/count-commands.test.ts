import { afterAll, expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../../src/index.ts";
import { countCommands, countNodeRedisCommands } from "../../../tools/redis/count-commands.ts";
import { onNodeRedis } from "../carrier.ts";
import { freshName, Parties, testUrl } from "../fixture.ts";
import { openNodeRedis } from "../node-redis.ts";

const parties = new Parties();
afterAll(parties.close);

it.skipIf(onNodeRedis)(
  "countCommands counts ioredis's commands, and those that the library writes itself",
  async () => {
    const sent = countCommands();
    const { redis, locks } = await parties.join();
    await locks.check(); // it has subscribed
    const before = sent();
    await redis.ping();
    expect(sent() - before).toBe(1);
    for (let i = 0; i < 5; i++) await locks.lock(freshName()).withLock(() => {});
    expect(sent() - before).toBe(11);
  },
);

it.each([5, 6] as const)(
  "countNodeRedisCommands counts the commands of node-redis %i, those with binary arguments too",
  async (version) => {
    const sent = countNodeRedisCommands();
    const client = openNodeRedis(version, { url: testUrl() });
    onTestFinished(() => client.destroy());
    const locks = createLockClient(client);
    await locks.check();
    const before = sent();
    await client.ping();
    const name = freshName();
    await client.set(name, Buffer.from("*1\r\nbytes"), { PX: 1_000 });
    expect(sent() - before).toBe(2);
    for (let i = 0; i < 5; i++) await locks.lock(freshName()).withLock(() => {});
    expect(sent() - before).toBe(12);
    await locks.close();
  },
);
