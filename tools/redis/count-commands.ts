import { Command, Redis } from "ioredis";

/** What a class of commands has. */
type Methods = Pick<Command, "toWritable">;

/**
 * Counts the commands that this process sends from now on, over all its connections, those that a
 * lock library opens for itself included. A script counts as one command: what it does inside the
 * server is not sent. A command is counted when it is written to its socket, so that one which is
 * queued first, or sent again, counts as often as it travels.
 *
 * The server's own counters (`total_commands_processed`, `commandstats`) cannot tell this: they include each
 * `redis.call` of a script.
 */
export function countCommands(): () => number {
  let sent = 0;
  const counted = new WeakSet<object>();
  const count = (methods: Methods): void => {
    const { toWritable } = methods;
    counted.add(methods);
    methods.toWritable = function (this: Command, socket: object) {
      sent += 1;
      return toWritable.call(this, socket);
    };
  };
  count(Command.prototype);
  // A library may have a class of its own, which writes its commands itself.
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function (this: Redis, ...[command, stream]: Parameters<typeof sendCommand>) {
    const methods = Object.getPrototypeOf(command) as Methods;
    if (Object.hasOwn(methods, "toWritable") && !counted.has(methods)) count(methods);
    return sendCommand.call(this, command, stream);
  };
  return () => sent;
}
