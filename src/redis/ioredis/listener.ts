import type { RedisLike, SubscriberLike } from "../../api/redis.ts";
import { detached } from "../../util/detached.ts";
import { isReplyError, type Listener, type ListenerEvents } from "../driver.ts";
import { isConnection, neverKeepAlive } from "./connection.ts";
import { ConnectionEvents } from "./connection-events.ts";
import { follow, type Options } from "./current-options.ts";
import { readable } from "./errors.ts";

/**
 * A duplicate must reconnect, whatever the caller chose for its own connection. `Subscriber`
 * subscribes again. Closing it does not wait for the server to close it too: that would keep a
 * process alive for 2 s.
 */
const OPTIONS = {
  disconnectTimeout: 0,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  autoResendUnfulfilledCommands: true,
  autoResubscribe: false,
  lazyConnect: false,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  keyPrefix: "",
  readOnly: false,
};

/** A duplicate of a connection, for messages. */
export class IoredisListener implements Listener {
  readonly #connection: SubscriberLike;
  readonly #isSharded: boolean;

  /** `current`: the options with which a copy of `redis` connects now. */
  constructor(redis: RedisLike, isSharded: boolean, events: ListenerEvents, current: () => Options) {
    // ioredis calls this for a delay when the connection is lost; null: it stays closed.
    const retryStrategy = (times: number): number | null =>
      events.isWanted() ? Math.min(times * 50, 2_000) : null;
    const own = { ...OPTIONS, retryStrategy };
    const connection = detached(() => redis.duplicate({ ...current(), ...own }));
    if (!isConnection(connection))
      throw new TypeError("duplicate() of the ioredis connection made no connection");
    follow(connection, own, current);
    neverKeepAlive(connection);
    this.#connection = connection;
    this.#isSharded = isSharded;
    connection.on("error", (error) => {
      // ioredis 5 reports a slot that moved away only by an error about its command queue.
      if (String(error).includes("Command queue state error")) events.moved();
      else if (isReplyError(error)) events.refused(error);
    });
    connection.on(isSharded ? "smessage" : "message", events.message);
    connection.on("moved", events.moved);
    const watched = new ConnectionEvents(connection);
    watched.add({
      ready: events.ready,
      lost: () => events.lost(readable(watched.lastError)),
      ended: events.ended,
    });
  }

  get isReady(): boolean {
    return this.#connection.status === "ready";
  }

  subscribe(channels: readonly string[]): Promise<unknown> {
    const connection = this.#connection;
    return this.#isSharded ? connection.ssubscribe(...channels) : connection.subscribe(...channels);
  }

  unsubscribe(channel: string): void {
    const connection = this.#connection;
    try {
      (this.#isSharded ? connection.sunsubscribe(channel) : connection.unsubscribe(channel)).catch(() => {});
    } catch {
      // A wrapped connection: its messages are read, and reach no listener.
    }
  }

  close(): void {
    this.#connection.disconnect();
  }
}
