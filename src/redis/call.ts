import type { RedisArgument } from "../api/redis.ts";
import type { Script, ScriptKeys } from "./script.ts";

/** Receives the outcome of a command, once. */
export interface Callback<Answer> {
  /** Called while the library reads, in the asynchronous context of the connection, or from a microtask. */
  answered(answer: Answer): void;
  /**
   * It is unknown whether the script has run or will run. Called from a microtask, never while the
   * command is being sent.
   */
  failed(error: unknown): void;
}

/**
 * Turns a script's reply into an answer. If it cannot read the reply it throws, before it has
 * changed anything.
 */
export type Decode<Answer> = (reply: unknown, call: ScriptCall) => Answer;

/** The call, and the epoch of the connection in which it was made. */
export interface ScriptCall {
  readonly script: Script;
  readonly keys: ScriptKeys;
  readonly argv: readonly RedisArgument[];
  readonly epoch: number;
}

/**
 * A reply without Buffers, and with numbers as numbers. With `stringNumbers` ioredis returns
 * numbers as strings, and no other type.
 */
export function plain(reply: unknown): unknown {
  if (typeof reply === "number") return reply;
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (typeof reply === "string") return Number(reply);
  if (!Array.isArray(reply)) return reply;
  for (const [i, item] of reply.entries()) if (typeof item !== "number") reply[i] = plain(item);
  return reply;
}
