import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { EventKind, GiveUpReason, LockEvent, LockEvents, LossReason } from "../../index.ts";
import type { CommonClient } from "../../inside.ts";
import type { Templates } from "./templates.ts";

/** What exporters need of a client. */
export type Observed = Pick<CommonClient, "id" | "on" | "off">;

/** Which time series something belongs to. */
export interface Series {
  /** What stands for the lock's name. */
  readonly lock: string;
  readonly kind: EventKind;
}

/** Where the numbers go. Times are in seconds. */
export interface Instruments {
  waited(series: Series, outcome: "acquired" | GiveUpReason, seconds: number): void;
  heldFor(series: Series, outcome: "released" | "lost", seconds: number): void;
  held(series: Series, by: 1 | -1): void;
  pending(series: Series, by: 1 | -1): void;
  /**
   * The counters, by 1; by 0 when a series begins: of what begins at 1 a question how much it grew
   * is answered with 0.
   */
  timeouts(series: Series, by: number): void;
  losses(series: Series, reason: LossReason, by: number): void;
  renewFailures(series: Series, by: number): void;
  passes(series: Series, by: number): void;
}

/** Of `db.client.operation.duration`, and two for locks that are held for long; in seconds. */
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
 * Makes numbers of a client's events. A gauge falls only for what it has risen for, so none is ever
 * negative, also when an exporter comes while locks are held, and whatever is told twice.
 */
export class Census {
  readonly #locks: Observed;
  readonly #templates: Templates;
  readonly #to: Instruments;
  /** Calls that wait. */
  readonly #pending = new Map<number, Series>();
  /** By call and name: of a multi-lock each lock counts. */
  readonly #held = new Map<string, { readonly series: Series; readonly since: number }>();
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
  }

  /** For how many seconds the oldest hold of each series has lasted. */
  *oldest(): Iterable<readonly [Series, seconds: number]> {
    const first = new Map<Series, number>();
    for (const { series, since } of this.#held.values())
      first.set(series, Math.min(since, first.get(series) ?? since));
    const now = performance.now();
    for (const [series, since] of first) yield [series, (now - since) / 1_000];
  }

  /** Nothing is counted any more, and the gauges fall by what is left. */
  stop(): void {
    for (const [event, listener] of Object.entries(this.#listeners))
      this.#locks.off(event as keyof LockEvents, listener as () => void);
    unsubscribe("holdfast:renew", this.#renewed);
    for (const series of this.#pending.values()) this.#to.pending(series, -1);
    for (const { series } of this.#held.values()) this.#to.held(series, -1);
    this.#pending.clear();
    this.#held.clear();
  }

  #waits(event: LockEvent): void {
    if (this.#pending.has(event.call)) return;
    const series = this.#seriesOf(event);
    this.#pending.set(event.call, series);
    this.#to.pending(series, 1);
  }

  #waitsNoMore({ call }: LockEvent): void {
    const series = this.#pending.get(call);
    if (series && this.#pending.delete(call)) this.#to.pending(series, -1);
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
    // A loss that its release has found is told twice.
    if (!hold || !this.#held.delete(key)) return;
    this.#to.held(hold.series, -1);
    this.#to.heldFor(hold.series, outcome, event.heldFor / 1_000);
  }

  readonly #renewed = (message: unknown): void => {
    const { client, error, ...event } = message as LockEvent & { client: string; error?: Error };
    if (error && client === this.#locks.id) this.#to.renewFailures(this.#seriesOf(event), 1);
  };

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
    for (const reason of Object.keys(REASONS)) this.#to.losses(series, reason as LossReason, 0);
    return series;
  }
}

const keyOf = ({ call, name }: LockEvent): string => `${call} ${name}`;
