import { afterAll, expect, it } from "vitest";
import { countCommands } from "../../../tools/redis/count-commands.ts";
import { freshName, Parties } from "../fixture.ts";

const parties = new Parties();
afterAll(parties.close);

it("counts ioredis's commands, and those that the library writes itself", async () => {
  const sent = countCommands();
  const { redis, locks } = await parties.join();
  await locks.check(); // it has subscribed
  const before = sent();
  await redis.ping();
  expect(sent() - before).toBe(1);
  for (let i = 0; i < 5; i++) await locks.lock(freshName()).withLock(() => {});
  expect(sent() - before).toBe(11);
});
