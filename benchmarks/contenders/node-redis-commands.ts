import commandsQueue from "@redis/client/dist/lib/client/commands-queue.js";

/**
 * Counts the commands that this process writes from now on over all its node-redis connections,
 * those that exist already and subscribers included. A command is counted when it goes to its
 * socket, a script as one; PING and HELLO as well.
 *
 * Its tracing channel would do without internals, but knows nothing of SUBSCRIBE and copies every argument.
 */
export function countNodeRedisCommands(): () => number {
  let written = 0;
  const queue = commandsQueue.default.prototype;
  const { commandsToWrite } = queue;
  queue.commandsToWrite = function* () {
    for (const command of commandsToWrite.call(this)) {
      written += 1;
      yield command;
    }
  };
  return () => written;
}
