import { tracingChannel } from "node:diagnostics_channel";
import {
  type Attributes,
  type Context,
  context,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace as traces,
} from "@opentelemetry/api";
import type { Observed } from "./census.ts";
import { guard } from "./guard.ts";
import type { Templates } from "./templates.ts";

/** A message of the lock's tracing channels: docs/events.md. */
interface Message {
  readonly client: string;
  readonly name: string;
  readonly kind: string;
  readonly call: number;
  readonly token?: number | null;
  readonly outcome?: string;
  readonly waitedFor?: number;
  readonly passed?: boolean;
  readonly error?: unknown;
  around?: ((body: () => unknown) => unknown) | null;
}

interface Call {
  readonly parent: Context;
  /** ms since 1970 */
  readonly since: number;
  /** The line in which it waits; null: it has not waited. */
  line: Line | null;
}

/** Calls that wait for one lock with one holder at a time. */
interface Line {
  readonly key: string;
  calls: number;
  /** The span of the last hold that has ended since then. */
  before: SpanContext | null;
}

/**
 * Several callers have these at a time, so the last one to leave need not be the one that made
 * room; and a multi-lock has several names.
 */
const NOT_HANDED_OVER: ReadonlySet<string> = new Set(["read", "semaphore", "multi"]);

/** Outcomes that the caller caused or asked for: not errors. */
const EXPECTED: ReadonlySet<string> = new Set(["acquired", "busy", "aborted", "reentered", "served"]);

const HANDED_OVER: Attributes = { "lock.link": "handed over by" };

/** Makes spans of a client's calls and holds. Returns a function that ends it. */
export function trace(locks: Observed, tracer: Tracer, templates: Templates): () => void {
  const calls = new Map<number, Call>();
  const holds = new Map<object, Span>();
  const lines = new Map<string, Line>();
  const attributesOf = ({ name, kind }: Message): Attributes => ({
    "lock.name": templates.of(name),
    "lock.kind": kind,
  });
  const guarded = guard();
  const ours = (told: (message: Message) => void) =>
    guarded((message: Message) => {
      if (message.client === locks.id) told(message);
    });

  const waits = (message: Pick<Message, "call" | "name" | "kind">): void => {
    const one = calls.get(message.call);
    if (!one || one.line) return;
    const key = keyOf(message);
    one.line = lines.get(key) ?? { key, calls: 0, before: null };
    one.line.calls++;
    lines.set(key, one.line);
  };
  const leave = (line: Line): void => {
    if (--line.calls === 0) lines.delete(line.key);
  };
  const acquire = {
    start: ours(({ call }) => {
      calls.set(call, { parent: context.active(), since: Date.now(), line: null });
    }),
    // The promise was settled: `end` is published when the call has returned it.
    asyncEnd: ours((message) => {
      const { call, outcome = "", waitedFor = 0, error, passed } = message;
      const one = calls.get(call);
      if (!one || !calls.delete(call)) return;
      const { line } = one;
      if (line) leave(line);
      else if (outcome === "acquired" || outcome === "busy" || outcome === "served") return;
      const attributes = { ...attributesOf(message), "lock.outcome": outcome };
      const { since: startTime, parent } = one;
      // No other process had the lock in between, and the hold of this call ends later: so the last
      // hold that has ended handed the lock over.
      const from = passed && !NOT_HANDED_OVER.has(message.kind) ? line?.before : null;
      const links = from ? [{ context: from, attributes: HANDED_OVER }] : [];
      const span = tracer.startSpan(
        "lock acquire",
        { kind: SpanKind.INTERNAL, startTime, attributes, links },
        parent,
      );
      if (!EXPECTED.has(outcome)) fail(span, error ?? null, outcome, startTime + waitedFor);
      span.end(startTime + waitedFor);
    }),
  };
  const hold = {
    start: ours((message) => {
      const parent = context.active();
      const attributes = attributesOf(message);
      if (message.token) attributes["lock.token"] = message.token;
      const span = tracer.startSpan("lock hold", { kind: SpanKind.INTERNAL, attributes }, parent);
      holds.set(message, span);
      const own = traces.setSpan(parent, span);
      const inner = message.around ?? ((body) => body());
      message.around = (body) => context.with(own, () => inner(body));
    }),
    asyncEnd: ours((message) => {
      const span = holds.get(message);
      if (!span || !holds.delete(message)) return;
      if (message.error) fail(span, message.error, "lost");
      span.end();
      const line = lines.get(keyOf(message));
      if (line) line.before = span.spanContext();
    }),
  };

  const [acquiring, holding] = [
    tracingChannel<unknown, object>("holdfast:acquire"),
    tracingChannel<unknown, object>("holdfast:hold"),
  ];
  acquiring.start.subscribe(acquire.start);
  acquiring.asyncEnd.subscribe(acquire.asyncEnd);
  holding.start.subscribe(hold.start);
  holding.asyncEnd.subscribe(hold.asyncEnd);
  locks.on("wait", waits);
  return () => {
    acquiring.start.unsubscribe(acquire.start);
    acquiring.asyncEnd.unsubscribe(acquire.asyncEnd);
    holding.start.unsubscribe(hold.start);
    holding.asyncEnd.unsubscribe(hold.asyncEnd);
    locks.off("wait", waits);
    for (const span of holds.values()) span.end();
    for (const all of [holds, calls, lines]) all.clear();
  };
}

const keyOf = ({ kind, name }: Pick<Message, "name" | "kind">): string => `${kind} ${name}`;

/** `at`: ms since 1970; left out: now. */
function fail(span: Span, error: unknown, outcome: string, at?: number): void {
  if (error instanceof Error) span.recordException(error, at);
  span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
}
