import type { RedisArgument } from "../api/redis.ts";
import type { Script, ScriptKeys } from "./script.ts";

// What this package needs of a Redis client library. Nothing outside of the driver's own folder
// knows the library's classes, events, options or words.
//
// Errors. One that Redis replied has the name "ReplyError", Redis's text as its message, and no
// words of the command in any property: they may be a password, or a hold. Every other error is
// the connection's, and its message is the library's.
//
// Replies. Texts are Buffers, numbers are numbers (or strings of digits, where the library was told
// to make strings of numbers), nil is null, lists are arrays. The scripts use nothing else of RESP3.

/**
 * One client library: makes a link of a connection that the caller gave, or null where that is no
 * connection of this library. Told by what the object can do, never by its class: two copies or
 * versions may live in one process. Does nothing to the connection: no listener, no command.
 */
export type Driver = (given: unknown) => Link | null;

/** A server: what can be done where the library need not find the place by a key. */
export interface Place {
  /**
   * The key of a node of a Cluster, as `Nodes.addressOf` gives it; "" for a connection that is no
   * node of a Cluster.
   */
  readonly address: string;
  /**
   * As messages name it: "127.0.0.1:6379", a socket's path, "Sentinel group mymaster of …" or
   * "Cluster of …" (three addresses at most). No user, no password.
   */
  readonly name: string;
  /** In messages only: the library's word for the state; "connecting" while it connects. */
  readonly status: string;
  /** Was TLS asked for? A hint for people hangs on it. Of a Cluster: false. */
  readonly isTls: boolean;
  /**
   * Why it could not be used, since it was ready the last time; null: nothing has failed, or
   * nothing is known. A link knows it while somebody listens (`Link.on`).
   */
  readonly lastError: unknown;

  /**
   * Sends a command without keys, such as SCAN, WAIT or EVAL with none, and resolves with its reply.
   * For what is rare. Rejects with the errors named above. Has no time limit of its own.
   */
  command(words: readonly RedisArgument[]): Promise<unknown>;

  /**
   * Opens a connection for messages. It keeps no process alive, adds no `keyPrefix` to channels,
   * prints no error, and comes back after a loss, with a delay of min(tries × 50 ms, 2 s), while
   * `events.isWanted()`: asked at each loss; false ends it.
   *
   * `isSharded`: SSUBSCRIBE, and messages of that kind; at a node of a Cluster only.
   *
   * @throws TypeError where the library makes no connection. No event is told before it returns.
   */
  listen(isSharded: boolean, events: ListenerEvents): Listener;

  /**
   * Opens a connection for commands that is used until it is lost: it connects at once, never
   * reconnects, keeps no process alive, prints no error, and fails whatever is not answered when it
   * is lost. Commands that come before it is connected wait. For WAIT, which proves something about
   * writes of its own connection only. Its `isOwn` is false: a silent one is not replaced. Called
   * where the link `opensOnce`, and never of a Cluster as a whole.
   */
  openOnce(): Link;
}

/** A connection that carries scripts: to a server, a Sentinel group or a Cluster. */
export interface Link extends Place {
  /** In messages: "ioredis". */
  readonly library: string;
  readonly kind: "server" | "sentinel" | "cluster";
  /**
   * What the library puts before the keys of the caller's commands. `ScriptKeys.full` has it
   * already.
   */
  readonly keyPrefix: string;
  /** `open` made it: nobody else uses it. */
  readonly isOwn: boolean;
  /** Of a Cluster. */
  readonly nodes: Nodes | null;
  /** Can `openOnce` be called, of it or of its nodes? Else the option `replicas` is refused. */
  readonly opensOnce: boolean;
  /**
   * ready: what is sent now is written in this turn of the event loop, or the next. ended: for
   * good, every command fails. Else away: never opened, connecting, lost. As it is at this moment,
   * also before an event tells it.
   */
  readonly state: "ready" | "away" | "ended";
  /**
   * When it was ready the last time, on the monotonic clock: now, if it is; -Infinity, if it never
   * was. Known while somebody listens.
   */
  readonly readyUntil: number;
  /**
   * When commands were last written, on the monotonic clock, that the application had held back for
   * longer than HELD_BACK, by blocking the event loop after a call; -Infinity: never. Of a driver
   * that writes within `send`: never.
   */
  readonly heldUntil: number;

  /** Tells of the connection from now on, until the returned function is called. Not within `on`. */
  on(events: LinkEvents): () => void;

  /**
   * Sends a script: in order, as far as the library keeps it. Never throws, and tells the call's
   * owner how it ended: once (what comes twice is ignored), or never where `lost` says so. Redirects
   * of a Cluster are the driver's.
   *
   * Sets `call.isWritten`, and may lower `call.until` to a time limit of the library's own.
   *
   * After a loss the driver sends again what was written and not answered, in its order as far as
   * it can, unless the library does so, or the caller's options forbid it (then it fails them, or
   * see `lost`). It leaves out calls that are over by then: see `Call.isOver`. What was waiting to be
   * written stays waiting.
   */
  send(call: Call): void;

  /** Writes what is held back of this turn, now. Nothing to do where the driver holds nothing back. */
  flush(): void;
  /**
   * Has it not handed to the system all that was sent? Asked as the process ends, when no turn of
   * the event loop follows.
   */
  readonly holdsBack: boolean;

  /**
   * Drops the socket to this address ("" where it is no Cluster), which is half open, without
   * waiting for the other end; the library makes another. False: there is none to drop. Asked of
   * own links only.
   */
  replace(address: string): boolean;

  /**
   * Opens an own link to the same place, with the caller's options, which connects at once, queues
   * commands until then, and prints no error.
   */
  open(): Link;
  /** Closes an own link for good, without waiting for answers. */
  close(): void;
}

/** Is told when a link comes and goes. */
export interface LinkEvents {
  /**
   * It was lost, or a try to get it back has failed; of a Cluster: a node was. Told before anything
   * is sent again. `forgotten`: what was written and not answered is neither sent again nor failed,
   * and how an error says why, such as "is not sent again (autoResendUnfulfilledCommands is false)".
   * Null: it is sent again, or fails.
   */
  lost(forgotten: string | null): void;
  /** It is ready, perhaps again; of a Cluster, a node is. What was waiting is written. */
  ready(): void;
  /** It was closed for good. The library may open it once more all the same: then `ready` follows. */
  ended(): void;
}

/** The map of hash slots that the library keeps of a Cluster. */
export interface Nodes {
  /** The address of the primary that has this slot; "": none is known. Cheap: asked for every command. */
  addressOf(slot: number): string;
  /** The same as a place; null: none is known, or nothing leads there. */
  placeOf(slot: number): Place | null;
  /** All primaries that are known: none before the first command was answered. */
  primaries(): readonly Place[];
  /** Reads the map again. `done` is told when that is over, with the error if it failed. */
  refresh(done?: (error?: unknown) => void): void;
}

/** A connection for messages. See `Place.listen`. */
export interface Listener {
  /** Is it connected, so that `subscribe` sends now? */
  readonly isReady: boolean;
  /**
   * Resolves when Redis has acknowledged all of them; rejects with Redis's or the connection's
   * error, or never. Called when it is ready only; after each `ready` every channel is asked for
   * again, which a library that subscribes again by itself answers at once.
   */
  subscribe(channels: readonly string[]): Promise<unknown>;
  /** Fails silently. */
  unsubscribe(channel: string): void;
  /** Closes it for good, at once. Events that are told afterwards are ignored. */
  close(): void;
}

/** Is told what becomes of a connection for messages. Functions, which need no `this`. */
export interface ListenerEvents {
  /** Shall it come back after this loss? */
  readonly isWanted: () => boolean;
  /** It is connected, perhaps again. */
  readonly ready: () => void;
  readonly message: (channel: string, message: string) => void;
  /** Lost, or a try to get it back has failed: messages may be missed from now on. */
  readonly lost: () => void;
  /** Redis does not let it in: AUTH, ACL, no database of that number. It goes on trying. */
  readonly refused: (error: Error) => void;
  /** Slots of sharded channels went away, of which it is not told. */
  readonly moved: () => void;
  /** It does not come back. */
  readonly ended: () => void;
}

/** A script on its way to Redis and back. */
export interface Call {
  readonly owner: CallOwner;
  readonly script: Script;
  /** `full`: with the prefix; `names`: without; `text`: their number and they, in RESP, made once. */
  readonly keys: ScriptKeys;
  readonly argv: readonly RedisArgument[];
  /**
   * By its hash, or as text. The words are: this, `script.sha` or `script.lua`, the number of keys,
   * `keys.full`, `argv`. A script that the server does not know is handed over again, as text.
   */
  name: "evalsha" | "eval";
  /** When it was sent, and when its owner gives it up: on the monotonic clock. */
  readonly since: number;
  until: number;
  /** It does not wait for a connection: the server may have it. */
  isWritten: boolean;
  /**
   * Answered, or given up: too late, or lost with the connection. A driver that sends again leaves
   * it out: it must not be executed after the command that takes it back.
   */
  isOver: boolean;
  /** It may wait for the end of this turn of the event loop, or for the next call that may not. */
  readonly isLate: boolean;
  /** Some of `argv` are Buffers that are no UTF-8, perhaps. */
  readonly isBinary: boolean;
}

/**
 * Whose call it is. Told in any asynchronous context: `refused` at any time, also within `send`;
 * `replied` as early as the reply is read, but not within `send`.
 */
export interface CallOwner {
  /** What it has sent that is not over. */
  readonly unanswered: ReadonlySet<Call>;
  /**
   * Of a script with `isForeign` the reply is as the library gives it to the caller's own commands
   * (texts as strings).
   */
  replied(call: Call, reply: unknown): void;
  /** It failed, or was refused by Redis. A script with `isImpatient` fails with TRYAGAIN at once. */
  refused(call: Call, error: unknown): void;
}

/** Did Redis reply this? */
export const isReplyError = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/** Why nothing can be sent where `Nodes.placeOf` knows none. */
export const NO_NODE = "the Cluster names no node for this hash slot: is it complete (CLUSTER INFO)?";
