import { CLOCK_DRIFT, CLOCK_GRAIN } from "../defaults.ts";
import { type Instant, now } from "../util/clock.ts";

/**
 * How long a hold is surely ours, on this process's clocks, whatever Redis does and whether or not it can be reached.
 *
 * Redis counts a TTL from the moment at which its script ran. We do not know that moment on our clock, but we know an
 * earlier one: t, when a command was sent, together with S, the server's time when that command ran. A TTL that was
 * set at server time S_g ends, on our clock, no earlier than t + (S_g − S) + TTL. A hundredth is taken off for clocks
 * that run at different rates, and 2 ms for Redis's whole milliseconds. It only moves forward.
 */
export class Validity {
  #sent: Instant;
  /** S in µs; null until a reply told it. Then S_g − S counts as 0, which is too early and therefore safe. */
  #server: number | null = null;
  #endMono = Number.NEGATIVE_INFINITY;
  #endWall = Number.NEGATIVE_INFINITY;

  constructor(sent: Instant) {
    this.#sent = sent;
  }

  /**
   * An acquire or yield was answered. R4: (t, S) is one pair and is replaced only here. If t moved when a re-check is
   * sent, a grant that was executed before it would get a deadline after its key.
   */
  answered(sent: Instant, serverMicros: number): void {
    this.#sent = sent;
    this.#server = serverMicros;
  }

  /** The TTL was set at this server time, as a reply or a grant message tells. Never later than received + TTL. */
  granted(serverMicros: number, ttl: number): void {
    const since = this.#server === null ? 0 : (serverMicros - this.#server) / 1_000;
    const received = now();
    const span = (since + ttl) * (1 - CLOCK_DRIFT) - CLOCK_GRAIN;
    this.#raise(
      Math.min(this.#sent.mono + span, received.mono + ttl),
      Math.min(this.#sent.wall + span, received.wall + ttl),
    );
  }

  /** A renewal that was sent then raised the TTL to this. */
  renewed(sent: Instant, ttl: number): void {
    const span = ttl * (1 - CLOCK_DRIFT) - CLOCK_GRAIN;
    this.#raise(sent.mono + span, sent.wall + span);
  }

  /** When the command was sent whose answer told the server's time last. */
  get sent(): Instant {
    return this.#sent;
  }

  /** ms left, negative when it is over. The earlier of both clocks counts. */
  left(at: Instant = now()): number {
    return Math.min(this.#endMono - at.mono, this.#endWall - at.wall);
  }

  #raise(mono: number, wall: number): void {
    this.#endMono = Math.max(this.#endMono, mono);
    this.#endWall = Math.max(this.#endWall, wall);
  }
}
