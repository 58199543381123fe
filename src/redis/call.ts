import type { RedisArgument } from "../api/redis.ts";
import { clocks } from "../util/clock.ts";
import type { Linked, LinkedList } from "../util/linked-list.ts";
import { isLate } from "./late.ts";
import type { Script, ScriptKeys } from "./script.ts";
import type { Statement } from "./statement.ts";

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
 * changed anything. `call.callback` is who has sent it.
 */
export type Decode<Answer, Sender> = (reply: unknown, call: Sent<Sender>) => Answer;

/** What a decoder sees of the call. */
export interface Sent<Sender> {
  readonly statement: Statement;
  /** 0: there is none, or it is not known. */
  readonly number: number;
  readonly argv: readonly RedisArgument[];
  readonly callback: Sender;
  /** Of the connection in which the call was made. */
  readonly epoch: number;
}

/**
 * A script on its way to Redis and back: one object from the call of `send` to its outcome. The
 * class of a link's calls may add what its library wants to find in a command.
 */
export class Call implements Linked {
  list: object | null = null;
  next: this | null = null;
  previous: this | null = null;
  readonly owner: CallOwner;
  readonly statement: Statement;
  /** For a prepared statement. */
  readonly hold: string;
  readonly number: number;
  readonly decode: Decode<unknown, unknown>;
  readonly callback: Callback<unknown>;
  /** When it was sent, on the monotonic clock; and after how many ms its owner gives it up. */
  readonly since: number;
  timeout: number;
  readonly epoch: number;
  /**
   * The address of the node that it is sent to, in Cluster; known only for the client's own
   * connections.
   */
  readonly node: string;
  /**
   * By its hash, or as text. The words are: this, `script.sha` or `script.lua`, the number of keys,
   * `keys.full`, `argv`. A script that the server does not know is sent again, as text.
   */
  name: "evalsha" | "eval" = "evalsha";
  /** It does not wait for a connection: the server may have received it. */
  isWritten = false;
  /**
   * Answered, or given up: too late, or lost with the connection. A driver that resends must leave
   * it out: it must not be executed after the command that takes it back.
   */
  isOver = false;
  /** It may wait for the end of this turn of the event loop, or for the next urgent call. */
  readonly isLate = isLate;

  constructor(
    owner: CallOwner,
    statement: Statement,
    hold: string,
    number: number,
    decode: Decode<unknown, never>,
    callback: Callback<never>,
    timeout: number,
    epoch: number,
    node: string,
  ) {
    this.owner = owner;
    this.statement = statement;
    this.hold = hold;
    this.number = number;
    this.decode = decode as Decode<unknown, unknown>;
    this.callback = callback as Callback<unknown>;
    this.since = clocks.mono.now();
    this.timeout = timeout;
    this.epoch = epoch;
    this.node = node;
  }

  get script(): Script {
    return this.statement.script;
  }

  get keys(): ScriptKeys {
    return this.statement.keys;
  }

  /** What comes after the keys. */
  get argv(): readonly RedisArgument[] {
    return this.statement.argv(this.hold, this.number);
  }
}

/** The class of a link's calls. */
export type CallClass = new (...given: ConstructorParameters<typeof Call>) => Call;

/**
 * Receives the call's outcome, in any asynchronous context: `refused` at any time, also within
 * `send`; `replied` as early as the reply is read, but not within `send`.
 */
export interface CallOwner {
  /** Its calls that are not over. */
  readonly unanswered: LinkedList<Call>;
  /**
   * For a script with `isForeign` the reply has the form of replies to the caller's own commands
   * (texts as strings).
   */
  replied(call: Call, reply: unknown): void;
  /**
   * It failed, or was refused by Redis. A script with `isImpatient` fails with TRYAGAIN at once.
   */
  refused(call: Call, error: unknown): void;
}
