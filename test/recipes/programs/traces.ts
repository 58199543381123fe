import { SpanStatusCode, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createLockClient, type Lease, type LockClient, type LockOptions } from "holdfast";
import { connect, prove, sleep } from "./support.ts";

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
);

// #region traces
const tracer = trace.getTracer("locks");

/** `withLock` in two spans of the caller's trace: one for the wait, one for the hold. */
export async function withTracedLock<T>(
  locks: LockClient,
  name: string,
  body: (lease: Lease) => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const attributes = { "lock.name": name.split(":", 1)[0] };
  const wait = tracer.startSpan("lock acquire", { attributes });
  let hold = wait;
  try {
    return await locks.lock(name).withLock((lease) => {
      wait.end();
      hold = tracer.startSpan("lock hold", { attributes: { ...attributes, "lock.token": lease.token } });
      return body(lease);
    }, options);
  } catch (error) {
    hold.recordException(error as Error); // of the wait, when the lock was not had
    hold.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    hold.end();
  }
}
// #endregion

const redis = connect();
const locks = createLockClient(redis);
const name = `order:${process.pid}`;
let busy: Error | undefined;
await withTracedLock(locks, name, async () => {
  await sleep(100);
  await locks.outside(() =>
    withTracedLock(locks, name, async () => {}, { wait: 50 }).catch((error: Error) => {
      busy = error;
    }),
  );
});
prove(busy?.name === "LockTimeoutError", "the caller still gets the error");
const spans = exporter.getFinishedSpans().map((span) => `${span.name} ${span.status.code}`);
prove(
  spans.join() === `lock acquire 0,lock acquire ${SpanStatusCode.ERROR},lock hold 0`,
  `one span for each wait, one for the hold, and were: ${spans.join()}`,
);
const [held] = exporter.getFinishedSpans().slice(-1);
prove(
  (held?.duration[1] ?? 0) + (held?.duration[0] ?? 0) * 1e9 >= 100e6,
  "the hold's span lasts as long as the body",
);

await locks.close();
await redis.quit();
