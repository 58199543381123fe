import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Attributes, context, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { instrument } from "../../src/tools/telemetry/otel.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { running } from "../support/result-runs.ts";
import { until } from "../support/until.ts";

// holdfast/otel with the real SDK of OpenTelemetry, which exports to memory.

const parties = new Parties();
afterAll(parties.close);

describe("traces", () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const tracer = provider.getTracer("test");
  beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
  afterAll(async () => {
    context.disable();
    await provider.shutdown();
  });

  /** The spans that have ended since the last call. */
  const take = (): ReadableSpan[] => {
    const spans = [...exporter.getFinishedSpans()];
    exporter.reset();
    return spans;
  };
  const named = (spans: ReadableSpan[], name: string): ReadableSpan => {
    const found = spans.find((span) => span.name === name);
    if (!found) throw new Error(`There is no span ${name} among ${spans.map((span) => span.name)}`);
    return found;
  };
  const parentOf = (span: ReadableSpan) => span.parentSpanContext?.spanId;
  const seconds = ({ duration: [s, ns] }: ReadableSpan): number => s + ns / 1e9;

  it("a hold is a child of its caller's span, and what its body does is a child of the hold", async () => {
    const { locks } = await parties.join();
    const undo = instrument(locks, { tracer });
    const requests = new AsyncLocalStorage<string>();
    const name = `order:${freshName()}`;
    await tracer.startActiveSpan("request", async (request) => {
      await requests.run("r1", () =>
        locks.lock(name).withLock(async () => {
          await tracer.startActiveSpan("charge", async (charge) => {
            // Entered again, by the scope of the hold: no span of its own.
            await locks.lock(name).withLock(() => expect(requests.getStore()).toBe("r1"));
            charge.end();
          });
        }),
      );
      request.end();
    });
    const spans = take();
    expect(spans.map((span) => span.name)).toEqual(["charge", "lock hold", "request"]);
    const [charge, hold, request] = spans;
    if (!charge || !hold || !request) throw new Error("unreachable");
    expect(parentOf(hold)).toBe(request.spanContext().spanId);
    expect(parentOf(charge)).toBe(hold.spanContext().spanId);
    expect(hold.attributes).toEqual({
      "lock.name": "order",
      "lock.kind": "lock",
      "lock.token": expect.any(Number),
    });
    undo();
    await locks.lock(name).withLock(() => {});
    expect(take()).toEqual([]);
  });

  it("a wait is a span of its caller, as long as the wait, and so is one that times out, with its error", async () => {
    const { locks } = await parties.join();
    const { locks: others } = await parties.join();
    const undo = instrument(locks, { tracer, nameOf: () => "name" });
    const lock = locks.lock(freshName());
    const held = await others.lock(lock.name).lock();
    await tracer.startActiveSpan("request", async (request) => {
      expect(await lock.tryLock()).toBeNull();
      await failure(lock.lock({ wait: 30 }));
      const waiting = lock.lock();
      await until(async () => (await lock.inspect()).waiters?.length === 1);
      await held.unlock();
      await (await waiting).unlock();
      request.end();
    });
    const spans = take();
    // A lock that is busy for a caller who will not wait is no failure.
    expect(spans.map((span) => span.name)).toEqual(["lock acquire", "lock acquire", "lock hold", "request"]);
    const [vain, got, , request] = spans;
    if (!vain || !got) throw new Error("unreachable");
    expect(vain.attributes).toEqual({
      "lock.name": "name",
      "lock.kind": "lock",
      "lock.outcome": "timeout",
    });
    expect(vain.status.code).toBe(SpanStatusCode.ERROR);
    expect(seconds(vain)).toBeGreaterThanOrEqual(0.029);
    expect(got.attributes["lock.outcome"]).toBe("acquired");
    expect(got.status.code).toBe(SpanStatusCode.UNSET);
    for (const span of [vain, got]) expect(parentOf(span)).toBe(request?.spanContext().spanId);
    undo();
  });

  it("failures are recorded: an unavailable Redis, and a loss, which ends the span of its hold once", async () => {
    const { locks, redis } = await parties.join({ client: { leaseTime: 1_000 } });
    locks.on("error", () => {}); // the renewals that fail
    const undo = instrument(locks, { tracer });
    const lost = failure(
      locks.lock(freshName()).withLock(async ({ signal }) => {
        redis.disconnect();
        await until(() => signal.aborted);
      }),
    );
    await until(() => redis.status === "end" || redis.status === "close");
    const unavailable = await failure(locks.lock(freshName()).lock());
    expect(unavailable).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(await lost).toMatchObject({ code: "LOCK_LOST" });
    const spans = take();
    expect(spans.map((span) => span.name).sort()).toEqual(["lock acquire", "lock hold"]);
    const [acquire, hold] = [named(spans, "lock acquire"), named(spans, "lock hold")];
    expect(acquire.attributes["lock.outcome"]).toBe("unavailable");
    for (const { status, events } of [acquire, hold]) {
      expect(status.code).toBe(SpanStatusCode.ERROR);
      expect(events.map(({ name }) => name)).toEqual(["exception"]);
    }
    undo();
  });

  it("a term of runAsLeader and a run of once are holds, in which their bodies run", async () => {
    const { locks } = await parties.join();
    const undo = instrument(locks, { tracer });
    const body = () => tracer.startActiveSpan("work", (work) => work.end());
    await tracer.startActiveSpan("request", async (request) => {
      await locks.election(`leader:${freshName()}`).runAsLeader(body);
      await locks.runOnce(`report:${freshName()}`, { every: 60_000 }, body);
      request.end();
    });
    const spans = take();
    expect(spans.map((span) => span.name)).toEqual(["work", "lock hold", "work", "lock hold", "request"]);
    const request = named(spans, "request");
    for (const [at, kind, name] of [
      [0, "election", "leader"],
      [2, "once", "report"],
    ] as const) {
      const [work, hold] = [spans[at], spans[at + 1]];
      expect(hold?.attributes).toEqual({
        "lock.name": name,
        "lock.kind": kind,
        "lock.token": expect.any(Number),
      });
      expect([work, hold].map((span) => span && parentOf(span))).toEqual(
        [hold, request].map((span) => span?.spanContext().spanId),
      );
    }
    undo();
  });

  it("a wait that another caller of the process ended links to the hold that did, and no other wait links to one", async () => {
    const { locks } = await parties.join();
    const { locks: others } = await parties.join();
    const undo = instrument(locks, { tracer });
    const lock = locks.lock(freshName());
    const linksOf = (spans: readonly ReadableSpan[]) =>
      spans
        .filter((span) => span.name === "lock acquire")
        .map(({ links }) => links.map(({ context: { spanId }, attributes }) => [spanId, attributes]));
    // Again where the machine was so slow that what was known of the lock had become old: then
    // Redis hands it over.
    await until(async () => {
      const first = await lock.lock();
      const calls = [lock.lock(), lock.lock()];
      await until(async () => (await lock.inspect()).here.waiting === 2);
      await first.unlock();
      for (const call of calls) await (await call).unlock();
      const spans = take();
      const [one, two] = spans.filter((span) => span.name === "lock hold");
      const links = linksOf(spans);
      if (links.some(({ length }) => length === 0)) return false;
      expect(links).toEqual([
        [[one?.spanContext().spanId, { "lock.link": "handed over by" }]],
        [[two?.spanContext().spanId, { "lock.link": "handed over by" }]],
      ]);
      return true;
    });
    const held = await others.lock(lock.name).lock();
    const waiting = lock.lock();
    await until(async () => (await others.lock(lock.name).inspect()).waiters?.length === 1);
    await held.unlock();
    await (await waiting).unlock();
    const slots = locks.semaphore(freshName(), { permits: 1 });
    const permit = await slots.acquire();
    const next = slots.acquire();
    await until(async () => (await slots.inspect()).waiters.length === 1);
    await permit.release();
    await (await next).release();
    const spans = take();
    expect(spans.filter((span) => span.name === "lock hold")).toHaveLength(3);
    expect(linksOf(spans)).toEqual([[], []]);
    undo();
  });

  it("a call that waited for the result of another run has a span without an error, and others none", async () => {
    const [{ locks }, { locks: others }] = [await parties.join(), await parties.join()];
    const undo = instrument(locks, { tracer });
    const name = `pay:${freshName()}`;
    const { ran } = await running(others, name);
    const waited = new Promise((resolve) => locks.once("wait", resolve));
    const waiting = locks.remember(name, { keep: 60_000 }, () => "mine");
    await waited;
    ran("a secret");
    await waiting;
    await locks.remember(name, { keep: 60_000 }, () => "mine");
    const [span, ...more] = take();
    expect([span?.name, span?.status.code, more]).toEqual(["lock acquire", SpanStatusCode.UNSET, []]);
    expect(span?.attributes).toEqual({
      "lock.name": "pay",
      "lock.kind": "remember",
      "lock.outcome": "served",
    });
    undo();
  });

  it("spans of several clients do not mix, and those of lasting holds end when tracing is turned off", async () => {
    const [{ locks }, { locks: others }] = [await parties.join(), await parties.join()];
    const undo = instrument(locks, { tracer });
    await using _ = await others.lock(freshName()).lock();
    const lease = await locks.semaphore(freshName(), { permits: 1 }).acquire();
    expect(take()).toEqual([]);
    undo();
    undo();
    const [span, ...more] = take();
    expect([span?.attributes["lock.kind"], more]).toEqual(["semaphore", []]);
    expect(span?.attributes).not.toHaveProperty("lock.token"); // permits have none
    await lease.release();
    expect(take()).toEqual([]);
  });

  it.each(["startSpan", "end", "setStatus"])(
    "a tracer whose %s throws: no call fails, nothing stays locked, and it is told once",
    async (method) => {
      const [{ locks }, { locks: others }] = [await parties.join(), await parties.join()];
      const failing = (): never => {
        throw new Error(`theirs: ${method}`);
      };
      const startSpan: typeof tracer.startSpan = (...args) =>
        method === "startSpan" ? failing() : Object.assign(tracer.startSpan(...args), { [method]: failing });
      const warnings: Error[] = [];
      const uncaught: unknown[] = [];
      const warned = (warning: Error): void => void warnings.push(warning);
      const threw = (error: unknown): void => void uncaught.push(error);
      process.on("warning", warned).on("uncaughtException", threw);
      const undo = instrument(locks, { tracer: { ...tracer, startSpan } as typeof tracer });
      const name = freshName();
      const held = await others.lock(name).lock();
      expect(await failure(locks.lock(name).lock({ wait: 20 }))).toMatchObject({ code: "LOCK_TIMEOUT" });
      await held.unlock();
      expect(await locks.lock(name).withLock({ wait: 20_000 }, () => "ran")).toBe("ran");
      expect(await others.lock(name).isLocked()).toBe(false);
      await until(() => warnings.length > 0, { what: "the warning" });
      await nextTurn(); // Node throws what a subscriber has thrown in the next turn.
      process.off("warning", warned).off("uncaughtException", threw);
      expect(uncaught).toEqual([]);
      expect(warnings.map(({ message }) => message)).toEqual([`theirs: ${method}`]);
      undo();
    },
  );

  it("neither a meter nor a tracer is refused", async () => {
    const { locks } = await parties.join();
    expect(() => instrument(locks, {})).toThrow(TypeError);
    expect(() => instrument(locks, { tracer, nameOf: 5 as never })).toThrow(TypeError);
    // What this would do later, it would do where locks are handed over.
    for (const bad of [
      undefined,
      null,
      { tracer: {} },
      { meter: {} },
      { meter: null, tracer },
      { tracer, nameof: String },
    ])
      expect(() => instrument(locks, bad as never)).toThrow(/^Cannot observe the locks: /);
    expect(() => instrument({} as never, { tracer })).toThrow(/must be a lock client/);
    const undo = instrument(locks, { tracer });
    expect(() => instrument(locks, { tracer })).toThrow(/this tracer has them already/);
    undo();
    instrument(locks, { tracer })();
    expect(trace.getActiveSpan()).toBeUndefined();
  });
});

it("a meter whose counters throw ends no process, also at a renewal that failed", async () => {
  const { locks, redis } = await parties.join({ client: { leaseTime: 1_000 } });
  const meter = new MeterProvider().getMeter("test");
  const createCounter: typeof meter.createCounter = (name, options) =>
    Object.assign(meter.createCounter(name, options), {
      add() {
        throw new Error(`theirs: ${name}`);
      },
    });
  const warnings: string[] = [];
  const uncaught: unknown[] = [];
  const warned = ({ message }: Error): void => void warnings.push(message);
  const threw = (error: unknown): void => void uncaught.push(error);
  process.on("warning", warned).on("uncaughtException", threw);
  locks.on("error", () => {});
  const undo = instrument(locks, { meter: Object.assign(Object.create(meter), { createCounter }) });
  const lease = await locks.lock(freshName()).lock();
  redis.disconnect();
  await until(() => lease.signal.aborted, { what: "the end of a lease that is not renewed" });
  await until(() => warnings.includes("theirs: holdfast.lock.renew_failures") || uncaught.length > 0);
  await nextTurn();
  process.off("warning", warned).off("uncaughtException", threw);
  expect(uncaught).toEqual([]);
  undo();
});

it("metrics: what the locks of a client did, in seconds, by the templates of their names", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
  const provider = new MeterProvider({ readers: [reader] });
  const read = async () => {
    exporter.reset();
    await reader.forceFlush();
    const metrics = exporter.getMetrics().flatMap((one) => one.scopeMetrics.flatMap((two) => two.metrics));
    return (name: string, attributes: Attributes = {}) => {
      const metric = metrics.find(({ descriptor }) => descriptor.name === name);
      const point = metric?.dataPoints.find((one) =>
        Object.entries(attributes).every(([key, value]) => one.attributes[key] === value),
      );
      return { unit: metric?.descriptor.unit, value: point?.value, attributes: point?.attributes };
    };
  };
  const { locks } = await parties.join();
  const undo = instrument(locks, { meter: provider.getMeter("test"), nameOf: () => "a" });
  let passes = 0;
  locks.on("acquire", ({ passed }) => {
    passes += Number(passed);
  });
  const lock = locks.lock(freshName());
  const lease = await lock.lock();
  const waiting = lock.lock();
  const series = { "lock.name": "a", "lock.kind": "lock" };
  await until(async () => (await read())("holdfast.lock.pending_requests").value === 1);
  let metric = await read();
  expect(metric("holdfast.lock.held")).toEqual({ unit: "{lease}", value: 1, attributes: series });
  expect(metric("holdfast.lock.oldest_hold").unit).toBe("s");
  expect(metric("holdfast.lock.oldest_hold").value).toBeGreaterThan(0);
  expect(metric("holdfast.lock.oldest_wait").unit).toBe("s");
  expect(metric("holdfast.lock.oldest_wait").value).toBeGreaterThan(0);
  expect(metric("holdfast.lock.losses", { "lock.loss_reason": "expired" }).value).toBe(0);
  await failure(lock.lock({ wait: 20 }));
  await lease.unlock();
  const last = await waiting;

  metric = await read();
  expect(metric("holdfast.lock.held").value).toBe(1);
  expect(metric("holdfast.lock.pending_requests").value).toBe(0);
  expect(metric("holdfast.lock.oldest_wait").value).toBe(0);
  expect(metric("holdfast.lock.timeouts").value).toBe(1);
  expect(metric("holdfast.lock.passes").value).toBe(passes);
  expect(metric("holdfast.lock.renew_failures").value).toBe(0);
  expect(metric("holdfast.lock.wait_time", { "lock.outcome": "timeout" })).toMatchObject({
    unit: "s",
    value: { count: 1, buckets: { boundaries: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60] } },
  });
  expect(metric("holdfast.lock.wait_time", { "lock.outcome": "acquired" }).value).toMatchObject({ count: 2 });
  expect(metric("holdfast.lock.hold_time").attributes).toEqual({ ...series, "lock.outcome": "released" });

  // What is left when it ends is taken out of the counters that go up and down.
  undo();
  expect((await read())("holdfast.lock.held").value).toBe(0);
  await last.unlock();
  expect((await read())("holdfast.lock.held").value).toBe(0);
  await provider.shutdown();
});
