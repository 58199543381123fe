import { SILENCE_MAX } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import type { Link } from "./driver.ts";

/** What is known of one socket. Times on the monotonic clock, in ms. */
interface Socket {
  /** When the first command was sent since the last read; null: no answer is awaited. */
  since: number | null;
  /** How long it may be silent before it is replaced. */
  patience: number;
}

/**
 * Finds half-open connections among those that the client opened for its commands: the other end is
 * gone, and TCP would notice in a quarter of an hour. A connection that has been silent for
 * `replyTimeout` although commands were sent is destroyed, and the library makes another.
 *
 * A suspended server looks the same, and new connections do not help it. So the time doubles until
 * something is read again: an outage of a minute costs each client three connections, not one every
 * five seconds. A slow server that answers anything at all is left alone: it gets twice the time
 * that it last took. A caller's own connection is left alone too, because BLPOP may keep it silent.
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

  /** A command is sent on it now. */
  sent(node: string): void {
    const socket = this.#sockets.get(node);
    if (!socket) this.#sockets.set(node, { since: clocks.mono.now(), patience: this.#replyTimeout });
    else socket.since ??= clocks.mono.now();
  }

  /** Something was read from the server. */
  heard(node: string): void {
    const socket = this.#sockets.get(node);
    if (!socket || socket.since === null) return;
    const took = clocks.mono.now() - socket.since;
    socket.since = null;
    socket.patience = Math.min(Math.max(this.#replyTimeout, 2 * took), this.#longest);
  }

  /** A connection was lost: awaited answers come on another one, if they come. */
  closed(): void {
    for (const socket of this.#sockets.values()) socket.since = null;
  }

  /**
   * Call it after the replies that came while this process was suspended: the silence was then our
   * own.
   */
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
