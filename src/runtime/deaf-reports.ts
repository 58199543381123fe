import { LockError } from "../api/errors.ts";
import type { Events } from "../api/events.ts";
import { DEAF_AGAIN } from "../defaults.ts";
import type { DeafListener } from "../redis/transport.ts";
import { clocks } from "../util/clock.ts";

/**
 * Tells the application that messages do not arrive, once a minute for each reason: a hundred nodes
 * of a Cluster may refuse one password.
 */
export class DeafReports implements DeafListener {
  readonly #events: Events;
  /** When each reason was told last, on the monotonic clock. */
  readonly #told = new Map<string, number>();

  constructor(events: Events) {
    this.#events = events;
  }

  isDue(reason: string): boolean {
    const at = this.#told.get(reason);
    return at === undefined || clocks.mono.now() - at >= DEAF_AGAIN;
  }

  tell(place: string, reason: string, cause: unknown): void {
    if (!this.isDue(reason)) return;
    for (const known of this.#told.keys()) if (this.isDue(known)) this.#told.delete(known);
    this.#told.set(reason, clocks.mono.now());
    const text = `No messages arrive from Redis at ${place}, so callers that wait get a lock up to seconds late: the connection that this client opened for messages fails (${reason}).`;
    this.#events.report(new LockError("NO_MESSAGES", null, text, cause ?? undefined));
  }
}
