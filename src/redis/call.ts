import { tracingChannel } from "node:diagnostics_channel";
import type { Writable } from "node:stream";
import type { ClusterLike, RedisArgument, RedisLike } from "../api/redis.ts";
import { clocks } from "../util/clock.ts";
import type { Script, ScriptKeys } from "./script.ts";
import { cork, isPatient, type Writes } from "./writes.ts";

/** Is told once how a command ended. */
export interface Callback<Answer> {
  /** Called while ioredis reads, in the asynchronous context of the connection, or from a microtask. */
  answered(answer: Answer): void;
  /**
   * Nobody knows whether the script has run, or will yet. Called from a microtask, never while the
   * command is being sent.
   */
  failed(error: unknown): void;
}

/**
 * Makes an answer of what the script said. It may throw, before it has changed anything, when it
 * cannot read the reply.
 */
export type Decode<Answer> = (reply: unknown, call: ScriptCall) => Answer;

/** What was asked, and in which epoch of the connection. */
export interface ScriptCall {
  readonly script: Script;
  readonly keys: ScriptKeys;
  readonly argv: readonly RedisArgument[];
  readonly epoch: number;
}

/** Whose call it is. */
export interface CallOwner {
  readonly writes: Writes;
  /** Grows whenever the connection is lost. */
  readonly epoch: number;
  /** Called while ioredis reads. */
  replied(call: Call, reply: unknown): void;
  /** Called from a microtask: ioredis refuses some commands while it is being asked to send them. */
  refused(call: Call, error: unknown): void;
}

/** A script on its way to Redis and back. */
export interface Call extends ScriptCall {
  readonly decode: Decode<unknown>;
  readonly callback: Callback<unknown>;
  /** When it was sent, and when it is given up. */
  readonly since: number;
  readonly until: number;
  /** The address of the node that it went to, in Cluster; told only of connections that are ours alone. */
  node: string;
  /** It is not in the offline queue: the server may have it. */
  isWritten: boolean;
  /** A script is sent by its hash, and as text to a server that does not know it. */
  name: "evalsha" | "eval";
  readonly resolve: (reply: unknown) => void;
  reject: (error: unknown) => void;
  /** What ioredis returns for it; mostly nothing. */
  readonly promise: Promise<unknown> | undefined;
}

export type CallClass = new (
  owner: CallOwner,
  script: Script,
  keys: ScriptKeys,
  argv: readonly RedisArgument[],
  decode: Decode<unknown>,
  callback: Callback<unknown>,
  timeout: number,
) => Call;

const tracing = tracingChannel("ioredis:command");

/**
 * A class of calls that ioredis's `sendCommand` takes, because they inherit `methods` from its own
 * Command. Its constructor is left out: it makes a promise, six closures and two lists of all
 * arguments, and measures every key again. What this class does not know, such as what a later
 * version asks of a command, is still answered by ioredis's methods.
 */
function makeClass(methods: object): CallClass {
  class ScriptCommand implements Call {
    readonly script: Script;
    readonly keys: ScriptKeys;
    readonly argv: readonly RedisArgument[];
    readonly decode: Decode<unknown>;
    readonly callback: Callback<unknown>;
    readonly since = clocks.mono.now();
    readonly epoch: number;
    until: number;
    node = "";
    isWritten = false;
    name: "evalsha" | "eval" = "evalsha";
    // Tools that trace ioredis put functions of their own in the place of these two, and call them
    // without `this`.
    resolve: (reply: unknown) => void;
    reject: (error: unknown) => void;
    /**
     * ioredis returns it, and we do not look at it: it is made for subscribers of the diagnostics
     * channel only.
     */
    readonly promise: Promise<unknown> | undefined;
    // What ioredis notes on a command.
    isTraced = false;
    inTransaction = false;
    isResolved = false;
    isSettled = false;
    readonly #writes: Writes;

    constructor(
      owner: CallOwner,
      script: Script,
      keys: ScriptKeys,
      argv: readonly RedisArgument[],
      decode: Decode<unknown>,
      callback: Callback<unknown>,
      timeout: number,
    ) {
      this.script = script;
      this.keys = keys;
      this.argv = argv;
      this.decode = decode;
      this.callback = callback;
      this.epoch = owner.epoch;
      this.until = this.since + timeout;
      this.#writes = owner.writes;
      this.resolve = owner.replied.bind(owner, this);
      this.reject = (error) => queueMicrotask(() => owner.refused(this, error));
      this.promise = tracing.hasSubscribers ? promiseOf(this) : undefined;
    }

    /** For errors and tracers. */
    get args(): RedisArgument[] {
      const { script, keys, argv } = this;
      const text = this.name === "evalsha" ? script.sha : script.lua;
      return [text, String(keys.full.length), ...keys.full, ...argv];
    }

    getKeys(): readonly string[] {
      return this.keys.full;
    }

    getSlot(): number | null {
      return this.keys.slot;
    }

    /** ioredis's `commandTimeout`. */
    setTimeout(ms: number): void {
      this.until = Math.min(this.until, this.since + ms);
    }

    toWritable(stream: Writable): string {
      // What has waited in the offline queue leaves together too.
      if (isPatient || this.#writes.expected > 1 || !this.isWritten) cork(stream);
      const { script, keys, argv } = this;
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

function promiseOf(call: { resolve: Call["resolve"]; reject: Call["reject"] }): Promise<unknown> {
  const promise = new Promise((done, failed) => {
    const { resolve, reject } = call;
    call.resolve = (reply) => {
      done(reply);
      resolve(reply);
    };
    call.reject = (error) => {
      failed(error);
      reject(error);
    };
  });
  promise.catch(() => {});
  return promise;
}

const evalText = ({ lua }: Script): string => `$4\r\neval\r\n$${Buffer.byteLength(lua)}\r\n${lua}\r\n`;

/** Calls of connections whose `sendCommand` takes no command that we make: `callBuffer` sends them. */
export const PlainCall = makeClass(Object.prototype);

const classes = new WeakMap<object, CallClass>();

/**
 * The class of the calls that this connection's `sendCommand` takes. Commands must inherit from the
 * Command of the caller's own copy of ioredis, which is found by what a method of the connection
 * makes: so two copies and versions of ioredis can live in one process, and none is imported.
 * Friendly error stacks need what ioredis notes when a method is called.
 */
export function callClassOf(redis: RedisLike | ClusterLike): CallClass {
  const { showFriendlyErrorStack } = redis.options as { showFriendlyErrorStack?: boolean };
  if (showFriendlyErrorStack || Object.hasOwn(redis, "evalsha")) return PlainCall;
  const catching = { options: { value: {} }, sendCommand: { value: (command: unknown) => command } };
  const command: unknown = Object.create(redis, catching).evalsha("", 0);
  if (typeof command !== "object" || command === null || !("toWritable" in command)) return PlainCall;
  const methods = Object.getPrototypeOf(command);
  const made = classes.get(methods) ?? makeClass(methods);
  classes.set(methods, made);
  return made;
}

/**
 * A reply without Buffers, whose numbers are numbers: with `stringNumbers` ioredis makes strings of
 * them, of nothing else.
 */
export function plain(reply: unknown): unknown {
  if (typeof reply === "number") return reply;
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (typeof reply === "string") return Number(reply);
  if (!Array.isArray(reply)) return reply;
  for (const [i, item] of reply.entries()) if (typeof item !== "number") reply[i] = plain(item);
  return reply;
}
