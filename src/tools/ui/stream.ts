import { respond } from "./guard.ts";

/**
 * ms between pings: they show a browser that this server runs, and keep a quiet stream open in
 * proxies.
 */
const PING = 3_000;
/**
 * ms after which a stream ends, and the browser opens another one: its viewer may have lost the right
 * to look.
 */
const LONGEST = 5 * 60_000;
/** The limit for messages that a slow reader has not read: beyond it, it gets no further look. */
const BEHIND = 4;

/** Calls `tell` after each look with what is shown. Returns a function that stops this. */
type View = (tell: (number: number, shown: unknown) => void) => () => void;

/** What a viewer sees, after each look: server-sent events. */
export function stream(view: View, ended: AbortSignal): Response {
  const encoder = new TextEncoder();
  let end = (): void => {};
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send = (text: string): void => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(text));
        };
        send("retry: 1000\n\n");
        const ping = setInterval(() => send("event: ping\ndata:\n\n"), PING).unref();
        const over = setTimeout(() => end(), LONGEST).unref();
        const stop = view((number, shown) => send(`id: ${number}\ndata: ${JSON.stringify(shown)}\n\n`));
        end = () => {
          end = () => {};
          stop();
          clearInterval(ping);
          clearTimeout(over);
          ended.removeEventListener("abort", close);
          try {
            controller.close();
          } catch {
            // The reader has gone.
          }
        };
        const close = (): void => end();
        ended.addEventListener("abort", close);
        if (ended.aborted) end();
      },
      cancel: () => end(),
    },
    { highWaterMark: BEHIND },
  );
  return respond(body, "text/event-stream; charset=utf-8", 200, { "x-accel-buffering": "no" });
}
