import { SILENCE_MAX } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import type { Link } from "./driver.ts";

/** What is known of one socket. Times on the monotonic clock, in ms. */
interface Socket {
  /** When the first command was sent since anything was read; null: nothing is awaited. */
  since: number | null;
  /** How long it may be silent before it is replaced. */
  patience: number;
}

/**
 * Finds half-open connections among those that the client opened for its commands: the other end is
 * gone, and TCP would notice in a quarter of an hour. One that has been silent for `replyTimeout`
 * although commands were sent is destroyed, and the library makes another.
 *
 * A server that stands still looks the same from here, and new connections do not help it. So the
 * time doubles until something is read again: an outage of a minute costs each client three
 * connections, not one every five seconds. A slow server that answers anything at all is left
 * alone: it gets twice the time that it last took. And so is a connection of the caller's, which
 * BLPOP may keep silent.
 */
export class Silence {
  readonly #link: Link;
  readonly #replyTimeout: number;
  /** By the node's address, in Cluster. */
  readonly #sockets = new Map<string, Socket>();

  constructor(link: Link, replyTimeout: number) {
    this.#link = link;
    this.#replyTimeout = replyTimeout;
  }

  /** A command goes there now. */
  sent(node: string): void {
    const socket = this.#sockets.get(node);
    if (!socket) this.#sockets.set(node, { since: clocks.mono.now(), patience: this.#replyTimeout });
    else socket.since ??= clocks.mono.now();
  }

  /** The server said something. */
  heard(node: string): void {
    const socket = this.#sockets.get(node);
    if (!socket || socket.since === null) return;
    const took = clocks.mono.now() - socket.since;
    socket.since = null;
    socket.patience = Math.min(Math.max(this.#replyTimeout, 2 * took), this.#longest);
  }

  /** A connection was lost: what is awaited comes on another one, if it comes. */
  closed(): void {
    for (const socket of this.#sockets.values()) socket.since = null;
  }

  /** Call it behind the replies that came while this process stood still: then the silence was ours. */
  look(now: number): void {
    for (const [node, socket] of this.#sockets) {
      if (socket.since === null || now - socket.since < socket.patience) continue;
      socket.since = now;
      if (!this.#link.replace(node)) continue;
      socket.patience = Math.min(2 * socket.patience, this.#longest);
    }
  }

  get #longest(): number {
    return Math.max(SILENCE_MAX, this.#replyTimeout);
  }
}
