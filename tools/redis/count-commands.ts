import { Socket } from "node:net";
import { Command, Redis } from "ioredis";

/** The members that a class of commands has. */
type Methods = Pick<Command, "toWritable">;

/**
 * Counts the commands that this process sends from now on, over all its connections, including
 * those that a lock library opens for itself. A script counts as one command: the commands inside
 * it are not sent. A command is counted when it is written to its socket, so one that is first
 * queued, or sent again, counts as often as it is written.
 *
 * The server's own counters (`total_commands_processed`, `commandstats`) cannot show this: they
 * include each `redis.call` of a script.
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
  // A library may have its own class, which writes its commands itself.
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function (this: Redis, ...[command, stream]: Parameters<typeof sendCommand>) {
    const methods = Object.getPrototypeOf(command) as Methods;
    if (Object.hasOwn(methods, "toWritable") && !counted.has(methods)) count(methods);
    return sendCommand.call(this, command, stream);
  };
  return () => sent;
}

/**
 * The same for the connections of node-redis. It writes a command as one string that begins with
 * the number of its arguments, or as such a string and the rest of the command.
 */
export function countNodeRedisCommands(): () => number {
  let sent = 0;
  const { write } = Socket.prototype;
  Socket.prototype.write = function (this: Socket, ...args: Parameters<typeof write>) {
    if (typeof args[0] === "string" && /^\*\d+\r\n/.test(args[0])) sent += 1;
    return write.apply(this, args);
  } as typeof write;
  return () => sent;
}
