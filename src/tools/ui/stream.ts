import { respond } from "./guard.ts";

/**
 * ms between signs of life: by them a browser knows that this server is there, and proxies keep a
 * quiet stream open.
 */
const PING = 3_000;
/**
 * A stream ends after so many ms, and the browser opens another one: by then its viewer may not be
 * let in any more.
 */
const LONGEST = 5 * 60_000;
/** What was sent and not read yet, beyond which a slow reader gets no further look, in messages. */
const BEHIND = 4;

/** A view of something: how to be told what it shows, each time. Returns how to stop. */
type View = (tell: (number: number, shown: unknown) => void) => () => void;

/** What a viewer sees, as it comes: server-sent events. */
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
