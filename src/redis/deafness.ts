import { DEAF_AFTER, DEAF_LOSSES, DEAF_STEADY } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { newNonce } from "../util/random.ts";
import type { Place } from "./driver.ts";
import { probeMessage, publishProbe } from "./messages.ts";
import { isAboutAccess, isRefusal } from "./replies.ts";
import type { ScriptRunner } from "./script-runner.ts";
import type { DeafListener } from "./transport.ts";
import { explain } from "./trouble.ts";

/**
 * The lasting trouble of one connection for messages: it cannot connect, it may not subscribe, or
 * the server closes it again and again. Calls do not fail because of that, they are only slow: so
 * an event has to say it.
 *
 * Nothing is said of short trouble, such as a failover, nor while commands fail as well: then every
 * call says why.
 */
export class Deafness {
  readonly #place: Place;
  readonly #commands: ScriptRunner;
  readonly #listener: DeafListener;
  /** The last failure; null: none since the connection was well. */
  #error: { readonly cause: unknown } | null = null;
  /** Times on the monotonic clock: of the last failure, and since when no channel is subscribed. */
  #failedAt = Number.NEGATIVE_INFINITY;
  #since = 0;
  /** When a channel was subscribed after that; null: none was. */
  #heardAt: number | null = null;
  /** How often it was lost soon after that. */
  #losses = 0;
  #epoch = 0;
  #isAsking = false;

  constructor(place: Place, commands: ScriptRunner, listener: DeafListener) {
    this.#place = place;
    this.#commands = commands;
    this.#listener = listener;
  }

  /** Why no messages are received now, or not for long; null: they are. */
  get reason(): string | null {
    if (this.#error === null) return null;
    const now = clocks.mono.now();
    if (this.#heardAt !== null && (this.#losses < DEAF_LOSSES || now - this.#heardAt > DEAF_STEADY))
      return null;
    const why = explain(this.#error.cause ?? CLOSED);
    // No number: each reason is told once a minute.
    return this.#isFlapping ? `${why}; this happens again and again, soon after it is ready` : why;
  }

  /** A channel is subscribed. */
  heard(): void {
    this.#heardAt ??= clocks.mono.now();
  }

  /**
   * It was lost, could not connect, or may not subscribe. `cause` null: the library does not say
   * why. `channel`: one that it should receive. `took`: how many ms it has been failing already.
   */
  failed(cause: unknown, channel: string | undefined, took = 0): void {
    const now = clocks.mono.now();
    const { epoch, isAway } = this.#commands;
    const wasWell = this.#heardAt !== null && now - this.#heardAt > DEAF_STEADY;
    // RACE: both connections were lost, and this one comes back last.
    const isNew = isAway || epoch !== this.#epoch || wasWell || now - this.#failedAt > 3 * DEAF_STEADY;
    if (isNew) this.#losses = 0;
    else if (this.#heardAt !== null) this.#losses++;
    if (isNew || this.#heardAt !== null) this.#since = now - took;
    // What closed it says more than that it was closed.
    this.#error = { cause: cause ?? (isNew ? null : this.#error?.cause) };
    this.#failedAt = now;
    this.#heardAt = null;
    this.#epoch = epoch;
    const lasts =
      this.#isFlapping || now - this.#since >= DEAF_AFTER || isRefusal(cause) || isAboutAccess(cause);
    if (lasts && !isAway && channel !== undefined) void this.#tell(channel);
  }

  get #isFlapping(): boolean {
    return this.#losses >= DEAF_LOSSES;
  }

  async #tell(channel: string): Promise<void> {
    const { reason } = this;
    if (this.#isAsking || reason === null || !this.#listener.isDue(reason)) return;
    this.#isAsking = true;
    const isAnswered = await this.#isAnswered(channel);
    this.#isAsking = false;
    // RACE: meanwhile commands have stopped too, or messages have come back.
    if (!isAnswered || this.#commands.epoch !== this.#epoch || this.reason === null) return;
    this.#listener.tell(this.#place.name, reason, this.#error?.cause);
  }

  /** Does the server answer the commands of this client? To a channel that no client has. */
  #isAnswered(channel: string): Promise<boolean> {
    return publishProbe(this.#commands, `${channel}?`, probeMessage(newNonce())).then(
      () => true,
      (error: unknown) => isRefusal(error),
    );
  }
}

const CLOSED = new Error("the server closes it");
