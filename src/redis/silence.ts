import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { SILENCE_MAX } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { isCluster } from "./types.ts";

/** What is known of one connection. Times on the monotonic clock, in ms. */
interface Link {
  /** When the first command was sent since anything was read; null: nothing is awaited. */
  since: number | null;
  /** How long it may be silent before it is replaced. */
  patience: number;
}

/**
 * Finds half-open connections among those that the client opened for its commands: the other end is
 * gone, and TCP would notice in a quarter of an hour. One that has been silent for `replyTimeout`
 * although commands were sent is destroyed, and ioredis makes another.
 *
 * A server that stands still looks the same from here, and new connections do not help it. So the
 * time doubles until something is read again: an outage of a minute costs each client three
 * connections, not one every five seconds. A slow server that answers anything at all is left
 * alone: it gets twice the time that it last took. And so is a connection of the caller's, which
 * BLPOP may keep silent.
 */
export class Silence {
  readonly #redis: RedisLike | ClusterLike;
  readonly #replyTimeout: number;
  /** By the node's address, in Cluster. */
  readonly #links = new Map<string, Link>();

  constructor(redis: RedisLike | ClusterLike, replyTimeout: number) {
    this.#redis = redis;
    this.#replyTimeout = replyTimeout;
  }

  /** A command goes there now. */
  sent(node: string): void {
    const link = this.#links.get(node);
    if (!link) this.#links.set(node, { since: clocks.mono.now(), patience: this.#replyTimeout });
    else link.since ??= clocks.mono.now();
  }

  /** The server said something. */
  heard(node: string): void {
    const link = this.#links.get(node);
    if (!link || link.since === null) return;
    const took = clocks.mono.now() - link.since;
    link.since = null;
    link.patience = Math.min(Math.max(this.#replyTimeout, 2 * took), this.#longest);
  }

  /** A connection was lost: what is awaited comes on another one, if it comes. */
  closed(): void {
    for (const link of this.#links.values()) link.since = null;
  }

  /** Call it behind the replies that came while this process stood still: then the silence was ours. */
  look(now: number): void {
    for (const [node, link] of this.#links) {
      if (link.since === null || now - link.since < link.patience) continue;
      link.since = now;
      // Ending it in good order would wait for the other end.
      if (!this.#destroy(node)) continue;
      link.patience = Math.min(2 * link.patience, this.#longest);
    }
  }

  get #longest(): number {
    return Math.max(SILENCE_MAX, this.#replyTimeout);
  }

  #destroy(node: string): boolean {
    const redis = this.#redis;
    const connection = isCluster(redis)
      ? redis.nodes().find(({ options }) => `${options.host}:${options.port}` === node)
      : redis;
    const { stream } = (connection ?? {}) as { stream?: { destroy?(error: Error): void } };
    stream?.destroy?.(new Error("Redis was silent for too long, so the connection is replaced"));
    return stream?.destroy !== undefined;
  }
}
