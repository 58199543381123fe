import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createLockClient, type LockClient } from "holdfast";
import { instrument } from "holdfast/otel";
import { connect, prove, sleep } from "./support.ts";

// What @opentelemetry/sdk-node does at the start of a process.
const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

// #region traces
const tracer = trace.getTracer("shop");

/** Once for each client: its waits and holds are spans from now on, in the traces of their callers. */
export const traceLocks = (locks: LockClient): (() => void) => instrument(locks, { tracer });

export function ship(locks: LockClient, order: number): Promise<void> {
  return tracer.startActiveSpan("ship", async (span) => {
    try {
      // "lock acquire", if it had to wait; and "lock hold", to which the spans of the body belong.
      await locks.lock(`order:${order}`).withLock({ wait: 1_000 }, () => send(order));
    } finally {
      span.end();
    }
  });
}
// #endregion

function send(order: number): Promise<void> {
  return tracer.startActiveSpan("send", { attributes: { order } }, async (span) => {
    await sleep(100);
    span.end();
  });
}

const redis = connect();
const locks = createLockClient(redis);
const undo = traceLocks(locks);
await ship(locks, process.pid);

const spans = exporter.getFinishedSpans();
const named = (name: string): ReadableSpan => {
  const found = spans.find((span) => span.name === name);
  if (!found) throw new Error(`there is no span ${name} among ${spans.map((span) => span.name)}`);
  return found;
};
const isChild = (child: ReadableSpan, parent: ReadableSpan): boolean =>
  child.parentSpanContext?.spanId === parent.spanContext().spanId;
const [hold, request] = [named("lock hold"), named("ship")];
prove(isChild(hold, request), "the hold belongs to its caller");
prove(isChild(named("send"), hold), "what the body does belongs to the hold");
prove(hold.attributes["lock.name"] === "order", "the name of the lock does not go out");
prove(Number(hold.attributes["lock.token"]) > 0, "the fencing token does");
prove(!spans.some(({ name }) => name === "lock acquire"), "a call that did not wait has no span");

exporter.reset();
await locks.lock("order:1").withLock(() =>
  locks.outside(() =>
    locks
      .lock("order:1")
      .lock({ wait: 50 })
      .catch(() => {}),
  ),
);
const failed = exporter.getFinishedSpans().find(({ name }) => name === "lock acquire");
prove(failed?.status.code === SpanStatusCode.ERROR, "a call that waited in vain is an error");
prove(failed?.attributes["lock.outcome"] === "timeout", "and says why");

undo();
await locks.close();
await redis.quit();
