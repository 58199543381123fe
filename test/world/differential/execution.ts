import type { Kept, Reply } from "../../../src/tools/testing/keyspace.ts";
import { allScripts } from "../../support/load-scripts.ts";

/** A key as it was. Texts are bytes, one character each. */
export interface KeyState {
  readonly type: Kept["type"];
  /** The text; or fields and values in turn, as they were written; or members and scores, in order. */
  readonly value: readonly string[];
  /** How many ms are left, by the server's clock. 0 or more: it lives; Infinity: it has no end. */
  readonly ttl: number;
}

/** By key. What is not here does not exist. */
export type State = ReadonlyMap<string, KeyState>;

/** One run of a script in the memory Redis, with all that it depends on and all that it did. */
export interface Execution {
  readonly sha: string;
  readonly keys: readonly string[];
  readonly argv: readonly string[];
  /** The server's time in µs. */
  readonly micros: number;
  /** All keys of the script. */
  readonly before: State;
  readonly after: State;
  /** How many receivers the script was told of, by channel. */
  readonly receivers: ReadonlyMap<string, number>;
  /** What INFO replied, by section. */
  readonly info: ReadonlyMap<string, string>;
  /** Channels and messages in turn. */
  readonly messages: readonly string[];
  /** An error: its text. */
  readonly reply: Reply | Error;
}

/** Every script of lua/, by its SHA. */
export const scripts = new Map(
  allScripts.flatMap((group) => Object.values(group)).map((script) => [script.sha, script]),
);

export const nameOf = ({ sha }: Execution): string => scripts.get(sha)?.name ?? sha;
