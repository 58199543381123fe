import { tracingChannel } from "node:diagnostics_channel";
import type { Writable } from "node:stream";
import type { ClusterLike, RedisArgument, RedisLike } from "../../api/redis.ts";
import { Call, type CallClass } from "../call.ts";
import { readable } from "./errors.ts";
import { cork, Writes } from "./writes.ts";

/** A call in the form that ioredis's `sendCommand` takes. */
export interface Command extends Call {
  /** When its connection writes; set before it is sent. */
  writes: Writes;
  reject: (error: unknown) => void;
  /** What ioredis returns for it; usually nothing. */
  readonly promise: Promise<unknown> | undefined;
}

const tracing = tracingChannel("ioredis:command");

/**
 * A class of calls that ioredis's `sendCommand` takes, because they have the methods of its own
 * Command. Its constructor is bypassed: it makes a promise, six closures and two lists of all
 * arguments, and measures every key again. Members that this class does not define, such as those
 * that a later version asks for, are ioredis's own.
 */
function makeClass(methods: object): CallClass {
  class ScriptCommand extends Call implements Command {
    writes: Writes = NO_WRITES;
    // Tracing tools replace these two methods, and call theirs without `this`.
    resolve = (reply: unknown): void => {
      const { writes, owner, isOver } = this;
      // If no other reply is awaited, no other one has come, unless it was counted before.
      if (!isOver && (writes.expected > 0 || owner.unanswered.size > 1)) writes.replied();
      owner.replied(this, reply);
    };
    #reject: ((error: unknown) => void) | undefined = undefined;
    /**
     * ioredis returns it, and this package ignores it: it is created only for subscribers of the
     * diagnostics channel.
     */
    readonly promise: Promise<unknown> | undefined = tracing.hasSubscribers ? promiseOf(this) : undefined;
    // Fields that ioredis sets on a command.
    isTraced = false;
    inTransaction = false;
    isResolved = false;
    isSettled = false;

    get reject(): (error: unknown) => void {
      this.#reject ??= (error) => this.owner.refused(this, readable(error));
      return this.#reject;
    }

    set reject(reject: (error: unknown) => void) {
      this.#reject = reject;
    }

    /** For errors and tracers. */
    get args(): RedisArgument[] {
      const { script, keys } = this;
      const text = this.name === "evalsha" ? script.sha : script.lua;
      return [text, String(keys.full.length), ...keys.full, ...this.argv];
    }

    getKeys(): readonly string[] {
      return this.keys.full;
    }

    getSlot(): number | null {
      return this.keys.slot;
    }

    /** ioredis's `commandTimeout`. */
    setTimeout(ms: number): void {
      this.timeout = Math.min(this.timeout, ms);
    }

    toWritable(stream: Writable): string {
      const { isLate, isWritten, statement, hold, number } = this;
      // Commands from the offline queue leave together too, and are not delayed again.
      if (isLate || this.writes.expected > 1 || !isWritten) cork(stream, isLate && isWritten);
      return this.name === "evalsha" ? statement.text(hold, number) : statement.evalText(hold, number);
    }
  }
  // Its methods, those of a call, and then ioredis's.
  const { prototype } = ScriptCommand;
  const { getOwnPropertyDescriptors: membersOf } = Object;
  Object.defineProperties(prototype, { ...membersOf(Call.prototype), ...membersOf(prototype) });
  Object.setPrototypeOf(prototype, methods);
  return ScriptCommand;
}

/** It is replaced before a command is sent. */
const NO_WRITES = new Writes();

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

const classes = new WeakMap<object, CallClass>();

/**
 * The class of the commands that this connection's `sendCommand` takes. They must inherit from the
 * Command of the caller's own copy of ioredis, which is found through the command that a method of
 * the connection creates. So two copies and versions of ioredis can live in one process, and none
 * is imported. Null: `callBuffer` must carry the scripts. Friendly error stacks need what ioredis
 * records when a method is called.
 */
export function commandClassOf(redis: RedisLike | ClusterLike): CallClass | null {
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
