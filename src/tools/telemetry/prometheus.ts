import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { BUCKETS, Census, type Instruments, type Observed, type Series } from "./census.ts";
import { checkHas, checkKnown, checkLocks, Observing } from "./input.ts";
import { type NameOf, Templates } from "./templates.ts";

/** The names of a client's numbers in a registry: for `register`. */
export interface PrometheusOptions {
  /**
   * Returns what replaces a lock's name in the label `lock`: it must have few values. Left out: the
   * part before the first `:`, with `*` for numbers. After 200 different ones the rest counts as
   * `other`.
   */
  readonly nameOf?: NameOf | undefined;
}

/** The metrics of one registry, for all clients registered there. */
class Metrics implements Instruments {
  readonly censuses = new Set<Census>();
  readonly #registry: Registry;
  readonly #wait;
  readonly #hold;
  readonly #held;
  readonly #pending;
  readonly #timeouts;
  readonly #losses;
  readonly #renewFailures;
  readonly #passes;
  readonly #errors;
  readonly #all;

  constructor(registry: Registry) {
    this.#registry = registry;
    const registers = [registry];
    const labelNames = ["lock", "kind"] as const;
    const timed = { labelNames: [...labelNames, "outcome"], buckets: BUCKETS, registers };
    const plain = { labelNames, registers };
    const { censuses } = this;
    this.#wait = new Histogram({ ...WAIT, ...timed });
    this.#hold = new Histogram({ ...HOLD, ...timed });
    this.#held = new Gauge({ ...HELD, ...plain });
    this.#pending = new Gauge({ ...PENDING, ...plain });
    this.#timeouts = new Counter({ ...TIMEOUTS, ...plain });
    this.#losses = new Counter({ ...LOSSES, labelNames: [...labelNames, "reason"], registers });
    this.#renewFailures = new Counter({ ...RENEW_FAILURES, ...plain });
    this.#passes = new Counter({ ...PASSES, ...plain });
    this.#errors = new Counter({ ...ERRORS, labelNames: ["code"], registers });
    const oldest = (what: "hold" | "wait") =>
      new Gauge({
        ...OLDEST[what],
        ...plain,
        collect() {
          this.reset();
          for (const [series, seconds] of oldestOf(censuses, what)) this.set({ ...series }, seconds);
        },
      });
    oldest("hold");
    oldest("wait");
    const counted = [WAIT, HOLD, HELD, PENDING, TIMEOUTS, LOSSES, RENEW_FAILURES, PASSES, ERRORS];
    this.#all = [...counted, OLDEST.hold, OLDEST.wait];
  }

  waited(series: Series, outcome: string, seconds: number): void {
    this.#wait.observe({ ...series, outcome }, seconds);
  }

  heldFor(series: Series, outcome: string, seconds: number): void {
    this.#hold.observe({ ...series, outcome }, seconds);
  }

  held(series: Series, by: 1 | -1): void {
    this.#held.inc({ ...series }, by);
  }

  pending(series: Series, by: 1 | -1): void {
    this.#pending.inc({ ...series }, by);
  }

  timeouts(series: Series, by: number): void {
    this.#timeouts.inc({ ...series }, by);
  }

  losses(series: Series, reason: string, by: number): void {
    this.#losses.inc({ ...series, reason }, by);
  }

  renewFailures(series: Series, by: number): void {
    this.#renewFailures.inc({ ...series }, by);
  }

  passes(series: Series, by: number): void {
    this.#passes.inc({ ...series }, by);
  }

  errors(code: string, by: number): void {
    this.#errors.inc({ code }, by);
  }

  remove(): void {
    for (const { name } of this.#all) this.#registry.removeSingleMetric(name);
  }
}

const WAIT = {
  name: "holdfast_lock_wait_seconds",
  help: "Time from a call to its lock, or to its end without one.",
};
const HOLD = { name: "holdfast_lock_hold_seconds", help: "Time for which a lock was held." };
const HELD = { name: "holdfast_lock_held", help: "Leases that this process has." };
const PENDING = { name: "holdfast_lock_pending_requests", help: "Calls that wait." };
const TIMEOUTS = { name: "holdfast_lock_timeouts_total", help: "Calls that timed out." };
const LOSSES = { name: "holdfast_lock_losses_total", help: "Leases that were lost." };
const RENEW_FAILURES = {
  name: "holdfast_lock_renew_failures_total",
  help: "Renewals that Redis did not confirm; each is tried again until the lease ends.",
};
const PASSES = {
  name: "holdfast_lock_passes_total",
  help: "Acquisitions that came from another caller of the process, without a command.",
};
const ERRORS = {
  name: "holdfast_lock_errors_total",
  help: "What the client's error event reported, by the code: NO_MESSAGES each minute while no messages arrive.",
};
const OLDEST = {
  hold: { name: "holdfast_lock_oldest_hold_seconds", help: "Age of the oldest lease that is held." },
  wait: { name: "holdfast_lock_oldest_wait_seconds", help: "Age of the oldest call that still waits." },
};

/** How long the oldest holds, or waits, of all these have lasted. */
function oldestOf(censuses: Iterable<Census>, what: "hold" | "wait"): Iterable<readonly [Series, number]> {
  const found = new Map<string, readonly [Series, number]>();
  for (const census of censuses) {
    for (const [series, seconds] of census.oldest(what)) {
      const key = `${series.kind} ${series.lock}`;
      if (seconds >= (found.get(key)?.[1] ?? 0)) found.set(key, [series, seconds]);
    }
  }
  return found.values();
}

const observing = new Observing();
const metricsOf = new WeakMap<Registry, Metrics>();

/**
 * Measures a client's locks in a registry of prom-client: waits and holds as histograms in seconds,
 * gauges of held locks and waiting calls, counters of time-outs, losses, failed renewals, local
 * hand-offs and `error` events. Several clients may be registered in one registry.
 *
 * @param locks a client of `createLockClient`.
 * @param registry of prom-client, 15 or later.
 * @param options.nameOf returns what replaces a lock's name in the label `lock`; default: the part before
 *   the first `:`, with `*` for numbers.
 * @returns a function that ends it. The metrics leave the registry with the last of its clients.
 * @throws TypeError for bad arguments, and when this registry has these locks already; Error when
 *   the registry has other metrics of these names.
 * @example
 * import { register as registry } from "prom-client";
 * const unregister = register(locks, registry);
 * response.end(await registry.metrics()); // holdfast_lock_wait_seconds_bucket{le="0.001",lock="order",kind="lock",…
 */
export function register(locks: Observed, registry: Registry, options: PrometheusOptions = {}): () => void {
  checkLocks(locks);
  checkHas(registry, "registry", "a Registry of prom-client", ["registerMetric", "removeSingleMetric"]);
  checkKnown(options, ["nameOf"]);
  const templates = new Templates(options.nameOf);
  const metrics = metricsOf.get(registry) ?? new Metrics(registry);
  const end = observing.begin(locks, registry, "registry");
  metricsOf.set(registry, metrics);
  const census = new Census(locks, templates, metrics);
  metrics.censuses.add(census);
  return () => {
    if (!metrics.censuses.delete(census)) return;
    end();
    census.stop();
    if (metrics.censuses.size > 0) return;
    metrics.remove();
    metricsOf.delete(registry);
  };
}
