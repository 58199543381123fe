import type { Attributes, Meter, ObservableCallback, Tracer } from "@opentelemetry/api";
import { BUCKETS, Census, type Instruments, type Observed, type Series } from "./census.ts";
import { checkHas, checkKnown, checkLocks, Observing } from "./input.ts";
import { trace } from "./spans.ts";
import { type NameOf, Templates } from "./templates.ts";

/** The destination and names of a client's numbers and spans: for `instrument`. */
export interface OtelOptions {
  /** Receives the metrics. Left out: there are none. */
  readonly meter?: Meter | undefined;
  /** Receives the spans. Left out: there are none. */
  readonly tracer?: Tracer | undefined;
  /**
   * Returns what replaces a lock's name in `lock.name`: it must have few values. Left out: the part
   * before the first `:`, with `*` for numbers. After 200 different ones the rest counts as
   * `other`.
   */
  readonly nameOf?: NameOf | undefined;
}

/**
 * Measures and traces a client's locks with OpenTelemetry: the histograms `holdfast.lock.wait_time`
 * and `hold_time` in seconds, `held` and `pending_requests`, counters of time-outs, losses, failed
 * renewals and local hand-offs; a span `lock acquire` for each call that waited or failed, and a
 * span `lock hold` for each hold, in which the body of a `withLock` runs.
 *
 * @param locks a client of `createLockClient`.
 * @param options.meter for the metrics; at least this or `tracer` must be given.
 * @param options.tracer for the spans.
 * @param options.nameOf returns what replaces a lock's name; default: the part before the first `:`, with
 *   `*` for numbers.
 * @returns a function that ends it; open spans of holds end with it.
 * @throws TypeError without `meter` and `tracer`, for bad arguments, and when this meter or tracer
 *   has these locks already.
 * @example
 * import { metrics, trace } from "@opentelemetry/api";
 * const undo = instrument(locks, { meter: metrics.getMeter("locks"), tracer: trace.getTracer("locks") });
 */
export function instrument(locks: Observed, options: OtelOptions): () => void {
  checkLocks(locks);
  checkKnown(options, ["meter", "tracer", "nameOf"]);
  const { meter, tracer, nameOf } = options;
  if (!meter && !tracer)
    throw new TypeError("Cannot observe the locks: give a meter, a tracer, or both of OpenTelemetry");
  if (meter !== undefined) checkHas(meter, "meter", "a Meter of OpenTelemetry", METER);
  if (tracer !== undefined) checkHas(tracer, "tracer", "a Tracer of OpenTelemetry", ["startSpan"]);
  const templates = new Templates(nameOf);
  const undo: (() => void)[] = [];
  const end = (): void => {
    for (const one of undo.splice(0)) one();
  };
  try {
    if (meter) undo.push(observing.begin(locks, meter, "meter"), measure(locks, meter, templates));
    if (tracer) undo.push(observing.begin(locks, tracer, "tracer"), trace(locks, tracer, templates));
  } catch (error) {
    end();
    throw error;
  }
  return end;
}

const METER = ["createHistogram", "createUpDownCounter", "createCounter", "createObservableGauge"];

const observing = new Observing();

function measure(locks: Observed, meter: Meter, templates: Templates): () => void {
  const timed = { unit: "s", advice: { explicitBucketBoundaries: BUCKETS } };
  const wait = meter.createHistogram("holdfast.lock.wait_time", {
    ...timed,
    description: "Time from a call to its lock, or to its end without one.",
  });
  const hold = meter.createHistogram("holdfast.lock.hold_time", {
    ...timed,
    description: "Time for which a lock was held.",
  });
  const held = meter.createUpDownCounter("holdfast.lock.held", {
    unit: "{lease}",
    description: "Leases that this process has.",
  });
  const pending = meter.createUpDownCounter("holdfast.lock.pending_requests", {
    unit: "{request}",
    description: "Calls that wait.",
  });
  const timeouts = meter.createCounter("holdfast.lock.timeouts", {
    unit: "{timeout}",
    description: "Calls that timed out.",
  });
  const losses = meter.createCounter("holdfast.lock.losses", {
    unit: "{loss}",
    description: "Leases that were lost.",
  });
  const renewFailures = meter.createCounter("holdfast.lock.renew_failures", {
    unit: "{failure}",
    description: "Renewals that Redis did not confirm; each is tried again until the lease ends.",
  });
  const passes = meter.createCounter("holdfast.lock.passes", {
    unit: "{pass}",
    description: "Acquisitions that came from another caller of the process, without a command.",
  });
  const errors = meter.createCounter("holdfast.lock.errors", {
    unit: "{error}",
    description:
      "What the client's error event reported, by the code: NO_MESSAGES each minute while no messages arrive.",
  });
  const oldestHold = meter.createObservableGauge("holdfast.lock.oldest_hold", {
    unit: "s",
    description: "Age of the oldest lease that is held.",
  });
  const oldestWait = meter.createObservableGauge("holdfast.lock.oldest_wait", {
    unit: "s",
    description: "Age of the oldest call that still waits.",
  });
  const to: Instruments = {
    waited: (series, outcome, s) => wait.record(s, { ...attributesOf(series), "lock.outcome": outcome }),
    heldFor: (series, outcome, s) => hold.record(s, { ...attributesOf(series), "lock.outcome": outcome }),
    held: (series, by) => held.add(by, attributesOf(series)),
    pending: (series, by) => pending.add(by, attributesOf(series)),
    timeouts: (series, by) => timeouts.add(by, attributesOf(series)),
    losses: (series, reason, by) => losses.add(by, { ...attributesOf(series), "lock.loss_reason": reason }),
    renewFailures: (series, by) => renewFailures.add(by, attributesOf(series)),
    passes: (series, by) => passes.add(by, attributesOf(series)),
    errors: (code, by) => errors.add(by, { "error.type": code }),
  };
  const census = new Census(locks, templates, to);
  const oldest = (what: "hold" | "wait"): ObservableCallback => {
    return (result) => {
      for (const [series, seconds] of census.oldest(what)) result.observe(seconds, attributesOf(series));
    };
  };
  const [observeHolds, observeWaits] = [oldest("hold"), oldest("wait")];
  oldestHold.addCallback(observeHolds);
  oldestWait.addCallback(observeWaits);
  return () => {
    oldestHold.removeCallback(observeHolds);
    oldestWait.removeCallback(observeWaits);
    census.stop();
  };
}

const attributesOf = ({ lock, kind }: Series): Attributes => ({ "lock.name": lock, "lock.kind": kind });
