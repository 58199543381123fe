import { tracingChannel } from "node:diagnostics_channel";
import type { Writable } from "node:stream";
import type { ClusterLike, RedisArgument, RedisLike } from "../../api/redis.ts";
import type { Call } from "../driver.ts";
import type { Script } from "../script.ts";
import { readable } from "./errors.ts";
import { cork, type Writes } from "./writes.ts";

/** A call in the form that ioredis's `sendCommand` takes. */
export interface Command {
  reject: (error: unknown) => void;
  /** What ioredis returns for it; usually nothing. */
  readonly promise: Promise<unknown> | undefined;
}

export type CommandClass = new (call: Call, writes: Writes) => Command;

const tracing = tracingChannel("ioredis:command");

/**
 * A class of commands that ioredis's `sendCommand` takes, because they inherit `methods` from its
 * own Command. The constructor is bypassed: it makes a promise, six closures and two lists of all
 * arguments, and measures every key again. Members that this class does not define, such as those
 * that a later version asks for, are ioredis's own.
 */
function makeClass(methods: object): CommandClass {
  class ScriptCommand implements Command {
    readonly name: "evalsha" | "eval";
    // Tracing tools replace these two methods, and call theirs without `this`.
    resolve: (reply: unknown) => void;
    reject: (error: unknown) => void;
    /**
     * ioredis returns it, and this package ignores it: it is created only for subscribers of the
     * diagnostics channel.
     */
    readonly promise: Promise<unknown> | undefined;
    // Fields that ioredis sets on a command.
    isTraced = false;
    inTransaction = false;
    isResolved = false;
    isSettled = false;
    readonly #call: Call;
    readonly #writes: Writes;

    constructor(call: Call, writes: Writes) {
      this.name = call.name;
      this.#call = call;
      this.#writes = writes;
      this.resolve = writes.replied.bind(writes, call);
      this.reject = (error) => call.owner.refused(call, readable(error));
      this.promise = tracing.hasSubscribers ? promiseOf(this) : undefined;
    }

    /** For errors and tracers. */
    get args(): RedisArgument[] {
      const { script, keys, argv } = this.#call;
      const text = this.name === "evalsha" ? script.sha : script.lua;
      return [text, String(keys.full.length), ...keys.full, ...argv];
    }

    getKeys(): readonly string[] {
      return this.#call.keys.full;
    }

    getSlot(): number | null {
      return this.#call.keys.slot;
    }

    /** ioredis's `commandTimeout`. */
    setTimeout(ms: number): void {
      this.#call.until = Math.min(this.#call.until, this.#call.since + ms);
    }

    toWritable(stream: Writable): string {
      const { script, keys, argv, isLate, isWritten } = this.#call;
      // Commands from the offline queue leave together too, and are not delayed again.
      if (isLate || this.#writes.expected > 1 || !isWritten) cork(stream, isLate && isWritten);
      const head = this.name === "evalsha" ? `$7\r\nevalsha\r\n$40\r\n${script.sha}\r\n` : evalText(script);
      let text = `*${3 + keys.full.length + argv.length}\r\n${head}${keys.text}`;
      for (const arg of argv) {
        const part = String(arg);
        text += `$${Buffer.byteLength(part)}\r\n${part}\r\n`;
      }
      return text;
    }
  }
  return Object.setPrototypeOf(ScriptCommand.prototype, methods).constructor;
}

function promiseOf(command: {
  resolve: (reply: unknown) => void;
  reject: (error: unknown) => void;
}): Promise<unknown> {
  const promise = new Promise((done, failed) => {
    const { resolve, reject } = command;
    command.resolve = (reply) => {
      done(reply);
      resolve(reply);
    };
    command.reject = (error) => {
      failed(error);
      reject(error);
    };
  });
  promise.catch(() => {});
  return promise;
}

const evalText = ({ lua }: Script): string => `$4\r\neval\r\n$${Buffer.byteLength(lua)}\r\n${lua}\r\n`;

const classes = new WeakMap<object, CommandClass>();

/**
 * The class of the commands that this connection's `sendCommand` takes. They must inherit from the
 * Command of the caller's own copy of ioredis, which is found through the command that a method of
 * the connection creates. So two copies and versions of ioredis can live in one process, and none
 * is imported. Null: `callBuffer` must carry the scripts. Friendly error stacks need what ioredis
 * records when a method is called.
 */
export function commandClassOf(redis: RedisLike | ClusterLike): CommandClass | null {
  const { showFriendlyErrorStack } = redis.options as { showFriendlyErrorStack?: boolean };
  if (showFriendlyErrorStack || Object.hasOwn(redis, "evalsha")) return null;
  const catching = { options: { value: {} }, sendCommand: { value: (command: unknown) => command } };
  const command: unknown = Object.create(redis, catching).evalsha("", 0);
  if (typeof command !== "object" || command === null || !("toWritable" in command)) return null;
  const methods = Object.getPrototypeOf(command);
  const made = classes.get(methods) ?? makeClass(methods);
  classes.set(methods, made);
  return made;
}
