import type { Transport } from "../redis/transport.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { CallTimer, type Timers } from "../util/timers.ts";
import type { Leavable, Withdrawer } from "./lock-kind.ts";
import { backOff } from "./schedule.ts";

/**
 * Withdraws holds whose state in Redis is unknown: their command was rejected or timed out, their
 * caller has left, or a grant came for a hold that no caller waits for any more. Protects the next
 * waiters from a lock that no caller has (R3). A hold is withdrawn repeatedly, until Redis has
 * answered, until it cannot exist any more, or until the connection is closed for good. Only
 * `close()` waits for this.
 */
export class Cleanup {
  readonly #commands: Transport;
  readonly #timers: Timers;
  readonly #pending = new Set<Pending>();
  /**
   * How many releases are under way. `close()` must see their answers: its caller may end the
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
   * `lease`: ms that the hold may live after its command runs, which may be up to a reply timeout
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
   * Retries every failed withdrawal once now, and not again. Resolves when Redis has answered about
   * every hold that it may have. It does not wait for a hold whose command was never sent for want
   * of a connection: in ioredis's queue its withdrawal comes after that command.
   */
  end(): Promise<void> {
    this.isEnding = true;
    for (const { retry } of [...this.#pending]) {
      if (!retry) continue;
      this.#timers.clear(retry);
      retry.ring(clocks.mono.now());
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
  /** Redis may know of it since this time, on the monotonic clock. */
  readonly since: number;
  /** Rings at the next try; null while a try is under way. */
  retry: CallTimer | null;
}
