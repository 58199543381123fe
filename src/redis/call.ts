import type { RedisArgument } from "../api/redis.ts";
import type { Script, ScriptKeys } from "./script.ts";

/** Is told once how a command ended. */
export interface Callback<Answer> {
  /** Called while the library reads, in the asynchronous context of the connection, or from a microtask. */
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
