import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type {
  EventKind,
  GiveUpReason,
  LockError,
  LockErrorCode,
  LockEvent,
  LockEvents,
  LossReason,
} from "../../index.ts";
import type { CommonClient } from "../../inside.ts";
import { guard } from "./guard.ts";
import type { Templates } from "./templates.ts";

/** What exporters need of a client. */
export type Observed = Pick<CommonClient, "id" | "on" | "off">;

/** The time series of a value. */
export interface Series {
  /** The lock's name, or what replaces it. */
  readonly lock: string;
  readonly kind: EventKind;
}

/** A hold, or a call that waits. */
interface Begun {
  readonly series: Series;
  readonly since: number;
}

/** Receives the numbers. Times are in seconds. */
export interface Instruments {
  waited(series: Series, outcome: "acquired" | GiveUpReason, seconds: number): void;
  heldFor(series: Series, outcome: "released" | "lost", seconds: number): void;
  held(series: Series, by: 1 | -1): void;
  pending(series: Series, by: 1 | -1): void;
  /**
   * The counters, by 1; by 0 when a series begins: for a series that begins at 1, a query for its
   * increase returns 0.
   */
  timeouts(series: Series, by: number): void;
  losses(series: Series, reason: LossReason, by: number): void;
  renewFailures(series: Series, by: number): void;
  passes(series: Series, by: number): void;
  /** What the client's `error` event reports, by the code. */
  errors(code: LockErrorCode, by: number): void;
}

/** The buckets of `db.client.operation.duration`, and two for long holds; in seconds. */
export const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60];

const REASONS: Readonly<Record<LossReason, true>> = {
  expired: true,
  gone: true,
  taken: true,
  revoked: true,
  closed: true,
  scope: true,
  unknown: true,
};

/**
 * Turns a client's events into numbers. A gauge falls only for what it rose for, so none is ever
 * negative, even if an exporter starts while locks are held, or an event comes twice.
 */
export class Census {
  readonly #locks: Observed;
  readonly #templates: Templates;
  readonly #to: Instruments;
  /** Waiting calls. */
  readonly #pending = new Map<number, Begun>();
  /** By call and name: each lock of a multi-lock counts. */
  readonly #held = new Map<string, Begun>();
  readonly #series = new Map<string, Series>();
  readonly #listeners: { readonly [K in keyof LockEvents]?: LockEvents[K] };

  constructor(locks: Observed, templates: Templates, to: Instruments) {
    this.#locks = locks;
    this.#templates = templates;
    this.#to = to;
    this.#listeners = {
      wait: (event) => this.#waits(event),
      giveup: (event) => this.#gaveUp(event),
      acquire: (event) => this.#acquired(event),
      release: (event) => this.#ended(event, "released"),
      lost: (event) => {
        if (!event.remains) this.#ended(event, "lost");
        to.losses(this.#seriesOf(event), event.error.reason, 1);
      },
    };
    for (const [event, listener] of Object.entries(this.#listeners))
      locks.on(event as keyof LockEvents, listener as () => void);
    subscribe("holdfast:renew", this.#renewed);
    subscribe("holdfast:error", this.#failed);
  }

  /** For how many seconds the oldest hold, or pending wait, of each series has lasted; 0 without one. */
  *oldest(what: "hold" | "wait"): Iterable<readonly [Series, seconds: number]> {
    const now = performance.now();
    const first = new Map([...this.#series.values()].map((series) => [series, now]));
    for (const { series, since } of (what === "hold" ? this.#held : this.#pending).values())
      first.set(series, Math.min(since, first.get(series) ?? now));
    for (const [series, since] of first) yield [series, (now - since) / 1_000];
  }

  /** Stops counting; the gauges fall by their remaining values. */
  stop(): void {
    for (const [event, listener] of Object.entries(this.#listeners))
      this.#locks.off(event as keyof LockEvents, listener as () => void);
    unsubscribe("holdfast:renew", this.#renewed);
    unsubscribe("holdfast:error", this.#failed);
    for (const { series } of this.#pending.values()) this.#to.pending(series, -1);
    for (const { series } of this.#held.values()) this.#to.held(series, -1);
    this.#pending.clear();
    this.#held.clear();
  }

  #waits(event: LockEvent): void {
    if (this.#pending.has(event.call)) return;
    const series = this.#seriesOf(event);
    this.#pending.set(event.call, { series, since: performance.now() });
    this.#to.pending(series, 1);
  }

  #waitsNoMore({ call }: LockEvent): void {
    const wait = this.#pending.get(call);
    if (wait && this.#pending.delete(call)) this.#to.pending(wait.series, -1);
  }

  #acquired(event: Parameters<LockEvents["acquire"]>[0]): void {
    this.#waitsNoMore(event);
    const series = this.#seriesOf(event);
    this.#to.waited(series, "acquired", event.waitedFor / 1_000);
    if (event.passed) this.#to.passes(series, 1);
    const key = keyOf(event);
    if (!this.#held.has(key)) this.#to.held(series, 1);
    this.#held.set(key, { series, since: performance.now() });
  }

  #gaveUp(event: Parameters<LockEvents["giveup"]>[0]): void {
    this.#waitsNoMore(event);
    const series = this.#seriesOf(event);
    this.#to.waited(series, event.why, event.waitedFor / 1_000);
    if (event.why === "timeout") this.#to.timeouts(series, 1);
  }

  #ended(event: LockEvent & { readonly heldFor: number }, outcome: "released" | "lost"): void {
    const key = keyOf(event);
    const hold = this.#held.get(key);
    // A loss that its release has found is reported twice.
    if (!hold || !this.#held.delete(key)) return;
    this.#to.held(hold.series, -1);
    this.#to.heldFor(hold.series, outcome, event.heldFor / 1_000);
  }

  readonly #renewed = guard()((message: LockEvent & { client: string; error?: Error }) => {
    const { client, error, ...event } = message;
    if (error && client === this.#locks.id) this.#to.renewFailures(this.#seriesOf(event), 1);
  });

  /** By the channel: an exporter's listener would end the process warnings. */
  readonly #failed = guard()(({ client, error }: { client: string; error: LockError }) => {
    if (client === this.#locks.id) this.#to.errors(error.code, 1);
  });

  #seriesOf({ name, kind }: LockEvent): Series {
    const lock = this.#templates.of(name);
    const key = `${kind} ${lock}`;
    const known = this.#series.get(key);
    if (known) return known;
    const series = { lock, kind };
    this.#series.set(key, series);
    this.#to.timeouts(series, 0);
    this.#to.renewFailures(series, 0);
    this.#to.passes(series, 0);
    this.#to.errors("NO_MESSAGES", 0);
    for (const reason of Object.keys(REASONS)) this.#to.losses(series, reason as LossReason, 0);
    return series;
  }
}

const keyOf = ({ call, name }: LockEvent): string => `${call} ${name}`;
