import type { RedisArgument } from "../api/redis.ts";
import type { Call, CallClass } from "./call.ts";

// What this package needs of a Redis client library. Nothing outside the driver's own folder knows
// the library's classes, events, options or terms.
//
// Errors: an error that Redis replied has the name "ReplyError", Redis's text as its message, and
// no part of the command in any property: that may be a password, or a hold. Every other error is
// the connection's, and its message is the library's.
//
// Replies: texts are Buffers, numbers are numbers (or strings of digits, if the library was
// configured that way), nil is null, lists are arrays. The scripts use nothing else of RESP3.

/**
 * One client library: makes a link of a connection that the caller gave, or null if that is no
 * connection of this library. It recognises the object by its methods, never by its class: two
 * copies or versions may live in one process. Does nothing to the connection: no listener, no
 * command.
 */
export type Driver = (given: unknown) => Link | null;

/** A server: operations for which the library need not find the node by a key. */
export interface Place {
  /**
   * The key of a node of a Cluster, as `Nodes.addressOf` returns it; "" for any other connection.
   */
  readonly address: string;
  /**
   * For messages: "127.0.0.1:6379", a socket's path, "Sentinel group mymaster of …" or "Cluster of
   * …" (three addresses at most). No user, no password.
   */
  readonly name: string;
  /** For messages only: the library's word for the state; "connecting" while it connects. */
  readonly status: string;
  /** Was TLS asked for? Used for a hint in messages. False for a Cluster. */
  readonly isTls: boolean;
  /**
   * Why it could not be used since it was last ready; null: nothing has failed, or it is unknown. A
   * link knows it while it has a listener (`Link.on`).
   */
  readonly lastError: unknown;

  /**
   * Sends a command without keys, such as SCAN, WAIT or EVAL with none, and resolves with its
   * reply. For rare commands. Rejects with the errors named above. Has no time limit of its own.
   */
  command(words: readonly RedisArgument[]): Promise<unknown>;

  /**
   * Opens a connection for messages. It keeps no process alive, adds no `keyPrefix` to channels,
   * and prints no error. After each loss it calls `events.isWanted()`: if true it reconnects, with
   * a delay of min(tries × 50 ms, 2 s); if false it ends.
   *
   * `isSharded`: SSUBSCRIBE, and sharded messages; at a node of a Cluster only.
   *
   * @throws TypeError if the library makes no connection. No event comes before this returns.
   */
  listen(isSharded: boolean, events: ListenerEvents): Listener;

  /**
   * Opens a connection for commands that is used until it is lost: it connects at once, never
   * reconnects, keeps no process alive, prints no error, and fails all unanswered commands when it
   * is lost. Commands sent before it is connected wait. For WAIT, which proves something about the
   * writes of its own connection only. Its `isOwn` is false: a silent one is not replaced. Called
   * if the link `opensOnce`, and never for a Cluster as a whole.
   */
  openOnce(): Link;
}

/** A connection that carries scripts: to a server, a Sentinel group or a Cluster. */
export interface Link extends Place {
  /** In messages: "ioredis". */
  readonly library: string;
  readonly kind: "server" | "sentinel" | "cluster";
  /**
   * The library's prefix for the keys of the caller's commands. `ScriptKeys.full` already has it,
   * and after it the client's own `prefix`, which no library knows.
   */
  readonly keyPrefix: string;
  /** `open` made it: the application does not use it. */
  readonly isOwn: boolean;
  /** Null unless it is a Cluster. */
  readonly nodes: Nodes | null;
  /** Does it, or do its nodes, support `openOnce`? Otherwise the option `replicas` is refused. */
  readonly opensOnce: boolean;
  /**
   * ready: a command sent now is written in this turn of the event loop, or the next. ended: closed
   * for good, every command fails. away: never opened, connecting, or lost. Always current, even
   * before an event reports it.
   */
  readonly state: "ready" | "away" | "ended";
  /**
   * When it was last ready, on the monotonic clock: now, if it is ready; -Infinity, if it never
   * was. Known while it has a listener.
   */
  readonly readyUntil: number;
  /**
   * When commands were last written, on the monotonic clock, that the application had held back for
   * longer than HELD_BACK by blocking the event loop after a call; now, if a later turn of the event
   * loop will write them; -Infinity: never. Always -Infinity for a driver that writes within `send`.
   */
  readonly heldUntil: number;

  /** Makes the calls for `send`. */
  readonly Call: CallClass;

  /** Reports connection events until the returned function is called. Not within `on`. */
  on(events: LinkEvents): () => void;

  /**
   * Sends a script: in order, as far as the library keeps it. Never throws. Tells the call's owner
   * how it ended: once (a second outcome is ignored), or never if `lost` says so. The driver
   * follows the redirects of a Cluster.
   *
   * Sets `call.isWritten`, and may lower `call.timeout` to a time limit of the library's own.
   *
   * After a loss the driver resends written, unanswered commands, in order as far as it can. It
   * does not if the library does so itself, or if the caller's options forbid it (then it fails
   * them, or see `lost`). It leaves out calls that are over by then: see `Call.isOver`. Commands
   * that wait to be written keep waiting.
   */
  send(call: Call): void;

  /**
   * Sends a command about one key, which comes between these words: with `keyPrefix` before it, and
   * in a Cluster to the node that has it. Otherwise as `command`.
   */
  commandOn(key: string, before: readonly RedisArgument[], after: readonly RedisArgument[]): Promise<unknown>;

  /**
   * Writes the commands held back in this turn now. Does nothing if the driver holds nothing back.
   */
  flush(): void;
  /**
   * Are there sent commands that the system has not accepted? Called as the process ends, when no
   * turn of the event loop follows.
   */
  readonly holdsBack: boolean;

  /**
   * Drops the socket to this address ("" unless it is a Cluster), which is half open, without
   * waiting for the other end; the library makes another. False: there is none to drop. Called for
   * own links only.
   */
  replace(address: string): boolean;

  /**
   * Opens an own link to the same place with the caller's options. It connects at once, queues
   * commands until then, and prints no error.
   */
  open(): Link;
  /** Closes an own link for good, without waiting for answers. */
  close(): void;
}

/** Is notified when a link comes and goes. */
export interface LinkEvents {
  /**
   * It was lost, or a reconnect has failed; in a Cluster, that of a node. Called before anything is
   * sent again. `forgotten`: written, unanswered commands are neither sent again nor failed, and
   * how an error says why, such as "is not sent again (autoResendUnfulfilledCommands is false)".
   * Null: they are sent again, or fail.
   */
  lost(forgotten: string | null): void;
  /** It is ready, perhaps again; in a Cluster, a node is. Waiting commands are written. */
  ready(): void;
  /** It was closed for good. The library may reopen it all the same: then `ready` follows. */
  ended(): void;
}

/** The library's map of a Cluster's hash slots. */
export interface Nodes {
  /**
   * The address of the primary that has this slot; "": none is known. Cheap: called for every
   * command.
   */
  addressOf(slot: number): string;
  /** The same as a place; null: none is known, or it cannot be reached. */
  placeOf(slot: number): Place | null;
  /** All known primaries: none before the first command was answered. */
  primaries(): readonly Place[];
  /** Reads the map again, then calls `done`, with the error if that failed. */
  refresh(done?: (error?: unknown) => void): void;
}

/** A connection for messages. See `Place.listen`. */
export interface Listener {
  /** Is it connected, so that `subscribe` sends now? */
  readonly isReady: boolean;
  /**
   * Resolves when Redis has acknowledged all of them; rejects with Redis's or the connection's
   * error, or never. Called only when it is ready. After each `ready` it is called for every
   * channel again; a library that resubscribes by itself answers at once.
   */
  subscribe(channels: readonly string[]): Promise<unknown>;
  /** Fails silently. */
  unsubscribe(channel: string): void;
  /** Closes it for good, at once. Later events are ignored. */
  close(): void;
}

/** Is notified of a connection for messages. Functions, which need no `this`. */
export interface ListenerEvents {
  /** Shall it come back after this loss? */
  readonly isWanted: () => boolean;
  /** It is connected, perhaps again. */
  readonly ready: () => void;
  readonly message: (channel: string, message: string) => void;
  /**
   * Lost, or a reconnect has failed: messages may be missed from now on. `error`: why, as far as the
   * library says; otherwise null.
   */
  readonly lost: (error: unknown) => void;
  /** Redis refuses it: AUTH, ACL, no database of that number. It keeps trying. */
  readonly refused: (error: Error) => void;
  /** Slots of sharded channels moved away, without saying which. */
  readonly moved: () => void;
  /** It does not come back. */
  readonly ended: () => void;
}

/** Did Redis reply this? */
export const isReplyError = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/** Why nothing can be sent if `Nodes.placeOf` knows no place. */
export const NO_NODE = "the Cluster names no node for this hash slot: is it complete (CLUSTER INFO)?";
