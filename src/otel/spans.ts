import { tracingChannel } from "node:diagnostics_channel";
import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace as traces,
} from "@opentelemetry/api";
import type { Observed } from "../exporters/census.ts";
import type { Templates } from "../exporters/templates.ts";

/** What a tracing channel of the lock tells: docs/events.md. */
interface Message {
  readonly client: string;
  readonly name: string;
  readonly kind: string;
  readonly call: number;
  readonly token?: number;
  readonly outcome?: string;
  readonly waited?: number;
  readonly error?: unknown;
  around?: ((body: () => unknown) => unknown) | null;
}

interface Call {
  readonly parent: Context;
  /** ms since 1970 */
  readonly since: number;
  hasWaited: boolean;
}

/** What the caller has brought about itself, or asked for: no error of anything. */
const EXPECTED: ReadonlySet<string> = new Set(["acquired", "busy", "aborted", "reentered"]);

/** Makes spans of what a client's calls and holds tell. Returns how to end that. */
export function trace(locks: Observed, tracer: Tracer, templates: Templates): () => void {
  const calls = new Map<number, Call>();
  const holds = new Map<object, Span>();
  const attributesOf = ({ name, kind }: Message): Attributes => ({
    "lock.name": templates.of(name),
    "lock.kind": kind,
  });
  const ours =
    (told: (message: Message) => void) =>
    (message: unknown): void => {
      if ((message as Message).client === locks.id) told(message as Message);
    };

  const waits = ({ call }: { readonly call: number }): void => {
    const one = calls.get(call);
    if (one) one.hasWaited = true;
  };
  const acquire = {
    start: ours(({ call }) => {
      calls.set(call, { parent: context.active(), since: Date.now(), hasWaited: false });
    }),
    // The promise was settled: `end` is told when the call has returned it.
    asyncEnd: ours((message) => {
      const { call, outcome = "", waited = 0, error } = message;
      const one = calls.get(call);
      if (!one || !calls.delete(call)) return;
      if (!one.hasWaited && (outcome === "acquired" || outcome === "busy")) return;
      const attributes = { ...attributesOf(message), "lock.outcome": outcome };
      const { since: startTime, parent } = one;
      const span = tracer.startSpan(
        "lock acquire",
        { kind: SpanKind.INTERNAL, startTime, attributes },
        parent,
      );
      if (!EXPECTED.has(outcome)) fail(span, error ?? null, outcome, startTime + waited);
      span.end(startTime + waited);
    }),
  };
  const hold = {
    start: ours((message) => {
      const parent = context.active();
      const attributes = { ...attributesOf(message), "lock.token": message.token ?? 0 };
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
    holds.clear();
    calls.clear();
  };
}

/** `at`: ms since 1970; left out: now. */
function fail(span: Span, error: unknown, outcome: string, at?: number): void {
  if (error instanceof Error) span.recordException(error, at);
  span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
}
