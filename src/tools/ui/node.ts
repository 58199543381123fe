import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { warn } from "../../util/warn.ts";
import { plainly, type Sender } from "./guard.ts";

/** What frameworks add to a request of Node.js. */
interface Known extends IncomingMessage {
  /** The path before a router cut its own off. */
  readonly originalUrl?: string;
  /** A body that was read before, usually parsed. Some set {} for a body that no parser took. */
  readonly body?: unknown;
}

/** No action needs more. */
const BODY_MAX = 8_192;

/** Serves a request of `node:http`, Express, Koa and others by a function that answers a Request. */
export async function serve(
  answer: (request: Request, sender: Sender) => Promise<Response>,
  incoming: Known,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const made = await requestOf(incoming, gone.signal)
    .then((request) => (request instanceof Response ? request : answer(request, senderOf(incoming))))
    .catch((error: unknown) => {
      // node:http ignores what a handler returns: a rejection would end the process.
      if (!gone.signal.aborted) warn(error instanceof Error ? error : String(error));
      return plainly(500, "This request could not be answered: the server's standard error has the reason.");
    });
  const cookies = made.headers.getSetCookie();
  response.writeHead(made.status, {
    ...Object.fromEntries(made.headers),
    ...(cookies.length > 0 && { "set-cookie": cookies }),
    // The connection of a stream ends with it: a server that is being closed waits for all of them.
    ...(incoming.httpVersionMajor < 2 && isStream(made) && { connection: "close" }),
  });
  if (incoming.method === "HEAD" || !made.body) {
    await made.body?.cancel();
    response.end();
    return;
  }
  // A viewer that goes away is no error.
  await pipeline(Readable.fromWeb(made.body as Parameters<typeof Readable.fromWeb>[0]), response).catch(
    () => {},
  );
}

/**
 * Browsers speak HTTP/1.1 and ask to keep the connection. `Connection` is about one connection, so a
 * proxy puts its own in the place of the browser's: nginx closes, or says nothing since 1.29.7.
 */
const senderOf = ({ socket, headers, httpVersionMajor, httpVersionMinor }: Known): Sender => ({
  address: socket.remoteAddress ?? null,
  isRelayed:
    httpVersionMajor < 2 && (httpVersionMinor === 0 || !/\bkeep-alive\b/i.test(headers.connection ?? "")),
});

const isStream = ({ headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("text/event-stream") === true;

async function requestOf(incoming: Known, signal: AbortSignal): Promise<Request | Response> {
  const { method = "GET", headers, url = "/", originalUrl = url } = incoming;
  const place = `http://${headers.host ?? "unknown"}${originalUrl.startsWith("/") ? originalUrl : "/"}`;
  const fields = new Headers();
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !name.startsWith(":")) fields.set(name, [value].flat().join(", "));
  const body = method === "POST" ? await bodyOf(incoming) : null;
  if (body === undefined) return plainly(413, "No action is so long.");
  try {
    return new Request(place, { method, headers: fields, body, signal });
  } catch {
    // An invalid host, or one with a password; a method that no Request may have, such as TRACE.
    return plainly(400, "This is no request for a page.");
  }
}

async function bodyOf(incoming: Known): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of incoming) {
    length += part.length;
    if (length > BODY_MAX) return undefined;
    parts.push(part);
  }
  const { body } = incoming;
  // The body is already consumed: a body parser has read it.
  if (length > 0 || body === undefined) return Buffer.concat(parts).toString();
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  return typeof body === "string" ? body : JSON.stringify(body);
}
