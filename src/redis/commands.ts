import type { RedisArgument } from "../api/redis.ts";
import type { Callback, Decode } from "./call.ts";
import type { Script, ScriptKeys } from "./script.ts";
import type { Transport } from "./transport.ts";

/** What lock kinds need of whatever carries their scripts: a connection to Redis, or the memory of a test. */
export interface Commands extends Transport {
  /** Does each lock have a server of its own, by its slot? */
  readonly isCluster: boolean;
  /**
   * Keys for `send` and `run`, without the connection's prefix: made once where they are used again
   * and again.
   */
  keysOf(names: readonly string[]): ScriptKeys;
  /**
   * Runs a script. `told` is told what `decode` makes of the reply, or the error, after `timeout`
   * ms at the latest, at the most `replyTimeout`; never while it is being sent.
   */
  send<Answer>(
    script: Script,
    keys: ScriptKeys,
    args: readonly RedisArgument[],
    decode: Decode<Answer>,
    callback: Callback<Answer>,
    timeout?: number,
  ): void;
  /**
   * As `send`, for what is rare. Resolves with what `decode` makes of the answer, or rejects with
   * what it throws.
   */
  run<T>(
    script: Script,
    keys: ScriptKeys | readonly string[],
    args: readonly RedisArgument[],
    decode: (answer: unknown) => T,
    timeout?: number,
  ): Promise<T>;
  /** The server that has this key said that its time was so many µs. */
  tellTime(key: string | ScriptKeys, micros: number): void;
  /**
   * Until when, in the server's time in ms, a command that is sent now may be executed; 0: no
   * server has told its time yet.
   */
  notAfter(key: string | ScriptKeys, timeout?: number): number;
}
