import type { Match } from "./matches.ts";
import type { Connection } from "./servers/connection.ts";

/** What ioredis makes of a call; both of its versions, and its Cluster too, hand it to `sendCommand`. */
interface Command {
  readonly name: string;
  readonly args: unknown[];
  readonly promise: Promise<unknown>;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

interface Sender {
  sendCommand(command: Command, ...others: unknown[]): unknown;
}

/**
 * Has one command of a connection fail in its caller's eyes: "before" it is sent, so that Redis
 * never sees it, or "after" Redis has executed it. Unlike a fault of the proxy it leaves the
 * connection alone, and ioredis does not try again. Commands of connections that are duplicated
 * from this one are not seen.
 *
 * @example
 * const failed = failCommand(redis, "after", nth(2, named("incr")));
 * await redis.incr("n"); // 1
 * await redis.incr("n").catch(() => {}); // fails, and has counted
 * await redis.get("n"); // "2"
 * await failed; // ["incr", "n"]
 *
 * @returns resolves with the command when it has failed
 */
export function failCommand(
  connection: Connection,
  when: "before" | "after",
  match: Match,
  error = new Error("This command was chosen to fail"),
): Promise<string[]> {
  const sender = connection as unknown as Sender;
  const send = sender.sendCommand;
  const seen = new WeakSet<Command>(); // ioredis sends a command again after a reconnect, or a redirection
  return new Promise((happened) => {
    sender.sendCommand = function intercept(command, ...others) {
      const words = [command.name.toLowerCase(), ...command.args.map(String)];
      const isNew = !seen.has(command);
      seen.add(command);
      if (!isNew || !match(words)) return send.call(this, command, ...others);
      sender.sendCommand = send;
      const fail = () => {
        command.reject(error);
        happened(words);
      };
      if (when === "after") {
        command.resolve = fail;
        return send.call(this, command, ...others);
      }
      fail();
      return command.promise;
    };
  });
}
