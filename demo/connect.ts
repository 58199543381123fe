import { Command, Redis } from "ioredis";

/**
 * Connects to Redis.
 *
 * @throws Error that says where Redis was expected, and why it cannot be reached
 */
export async function connect(url: string): Promise<Redis> {
  // A demo would rather fail than wait for a Redis that is gone: one more try for a command, not twenty.
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1 });
  let trouble: Error | undefined;
  redis.on("error", (error) => {
    trouble = error;
  });
  try {
    await redis.connect();
    return redis;
  } catch (cause) {
    redis.disconnect();
    const { host, port } = redis.options;
    throw new Error(`Redis cannot be reached at ${host}:${port}: ${(trouble ?? cause) as Error}`, { cause });
  }
}

/**
 * Counts the commands that this process sends from now on, over all its connections, those that a lock library opens
 * for itself included. A script counts as one command: what it does inside the server is not sent. A command is
 * counted when it is written to its socket, so that one which is queued first, or sent again, counts as often as it
 * travels.
 *
 * The server's own counters (`total_commands_processed`, `commandstats`) cannot tell this: they include each
 * `redis.call` of a script.
 */
export function countCommands(): () => number {
  let sent = 0;
  const { toWritable } = Command.prototype;
  Command.prototype.toWritable = function (this: Command, socket: object) {
    sent += 1;
    return toWritable.call(this, socket);
  };
  return () => sent;
}
