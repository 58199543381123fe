import type { Transport } from "../redis/transport.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { CallTimer, type Timers } from "../util/timers.ts";
import type { Leavable, Withdrawer } from "./lock-kind.ts";
import { backOff } from "./schedule.ts";

/**
 * Takes back holds whose state in Redis is unknown: their command was rejected, timed out, or its
 * caller has gone; or a grant came for a hold with which no caller waits any more. Protects the
 * next waiters from a lock that nobody has (R3). A hold is left again and again, until Redis has
 * answered, until it cannot exist any more, or until the connection is closed for good. Nothing
 * waits for this but `close()`.
 */
export class Cleanup {
  readonly #commands: Transport;
  readonly #timers: Timers;
  readonly #pending = new Set<Pending>();
  /**
   * How many releases are under way, whose answers `close()` must see: its caller may end the
   * connection right after.
   */
  releases = 0;
  isEnding = false;
  #whenDone: (() => void) | null = null;

  constructor(commands: Transport, timers: Timers) {
    this.#commands = commands;
    this.#timers = timers;
  }

  /**
   * `lease`: ms that the hold may live after its command is executed, which may be a reply timeout
   * from now.
   */
  add(kind: Withdrawer, hold: Leavable & { readonly sent?: Instant }, lease: number): void {
    const until = clocks.mono.now() + this.#commands.replyTimeout + lease;
    let failures = 0;
    const pending: Pending = { since: hold.sent?.mono ?? Number.NEGATIVE_INFINITY, retry: null };
    this.#pending.add(pending);
    const done = (): void => this.#done(pending);
    const later = (): void => {
      const at = clocks.mono.now() + backOff(failures++);
      if (this.#commands.ended || this.isEnding || at > until) done();
      else {
        pending.retry = new CallTimer(attempt);
        this.#timers.set(pending.retry, at);
      }
    };
    const attempt = (): void => {
      pending.retry = null;
      // While the connection is away, tries would only pile up in it.
      if (failures > 0 && this.#commands.isAway) later();
      else kind.withdraw(hold).then(done, later);
    };
    attempt();
  }

  /**
   * What failed is tried once more now, and nothing is tried again. Resolves when Redis has
   * answered about all that it may have. A hold whose command was never sent, for want of a
   * connection, is waited for by nobody: its withdrawal stands behind that command in ioredis's
   * queue.
   */
  end(): Promise<void> {
    this.isEnding = true;
    for (const { retry } of [...this.#pending]) {
      if (!retry) continue;
      this.#timers.clear(retry);
      retry.ring();
    }
    return new Promise((resolve) => {
      this.#whenDone = resolve;
      this.look();
    });
  }

  #done(pending: Pending): void {
    this.#pending.delete(pending);
    this.look();
  }

  /** Is all of it done? */
  look(): void {
    if (!this.#whenDone || this.releases > 0) return;
    for (const { since } of this.#pending) if (this.#commands.mayHaveReached(since)) return;
    this.#whenDone();
  }
}

interface Pending {
  /** Redis may have heard of it since then, on the monotonic clock. */
  readonly since: number;
  /** Rings when it is tried again; null while a try is under way. */
  retry: CallTimer | null;
}
