import { createClient } from "redis";
import { lock } from "simple-redis-mutex";
import { countNodeRedisCommands } from "../../tools/redis/count-commands.ts";
import type { Contender } from "./contender.ts";

/**
 * Everybody who waits is told of every release, and asks again every 10 s besides. Nothing renews
 * its 30 s. One subscriber for the whole process, on the server of the first client that locks: one
 * session in a process.
 */
export const openSimpleRedisMutex: Contender["open"] = async (url) => {
  const commands = countNodeRedisCommands();
  const redis = createClient({ url });
  // Without a listener the first broken connection would end the process. Commands tell about it themselves.
  redis.on("error", (error) => console.error(error));
  await redis.connect();
  return {
    acquire: (name, { wait, lease }) =>
      // It rejects for one reason, the time is over; the failure of a command is an unhandled rejection.
      lock(redis, name, { failAfter: wait, ...(lease !== null && { timeout: lease }) }).catch(() => null),
    close: () => redis.close(),
    commands,
  };
};
