import { Command } from "ioredis";

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
