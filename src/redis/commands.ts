import type { Callback, Decode } from "./call.ts";
import type { Answer, Args, Procedure } from "./codec.ts";
import type { ScriptKeys } from "./script.ts";
import type { Statement } from "./statement.ts";
import type { Transport } from "./transport.ts";

/**
 * What lock kinds need of the carrier of their scripts: a connection to Redis, or a test's memory.
 */
export interface Commands extends Transport {
  /** May each lock be on another server, by its slot? */
  readonly isCluster: boolean;
  /**
   * Keys for `send` and `run`, without any prefix. Callers that use them repeatedly
   * build them once.
   */
  keysOf(names: readonly string[]): ScriptKeys;
  /**
   * Runs a script. `callback` receives the reply decoded by `decode`, or the error, after at most
   * `timeout` ms (and at most `replyTimeout`); never while the command is being sent. `hold`,
   * `number`: for a prepared statement.
   */
  send<Answer, Sender extends Callback<Answer>>(
    statement: Statement,
    decode: Decode<Answer, Sender>,
    callback: Sender,
    hold?: string,
    number?: number,
    timeout?: number,
  ): void;
  /** As `send`, for rare commands. Rejects with a TypeError if the script sends no such reply. */
  run<P extends Procedure>(
    script: P,
    keys: ScriptKeys | readonly string[],
    args: Args<P>,
    timeout?: number,
  ): Promise<Answer<P["form"]["replies"]>>;
  /** The server that has this key reported this time, in µs. */
  tellTime(key: string | ScriptKeys, micros: number): void;
  /**
   * What time it is at the server that has this key, in ms: never later than it is there, as far as
   * both clocks run at the same rate. NaN: no server has reported its time yet.
   */
  timeAt(key: string | ScriptKeys): number;
  /**
   * Until when, in the server's time in ms, a command sent now may be executed; 0: no server has
   * reported its time yet.
   */
  notAfter(key: string | ScriptKeys, timeout?: number): number;
}
