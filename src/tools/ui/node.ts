import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { plainly, type Sender } from "./guard.ts";

/** What frameworks make of a request, beside what Node.js does. */
interface Known extends IncomingMessage {
  /** The path before a router cut its own off. */
  readonly originalUrl?: string;
  /** A body that was read before, mostly parsed. Of a body that no parser wanted some make {}. */
  readonly body?: unknown;
}

/** No action needs more. */
const BODY_MAX = 8_192;

/** Serves a request of `node:http`, Express, Koa and others by what serves a Request. */
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
      // Nobody may look at what a handler of node:http returns: a rejection of it would end the process.
      if (!gone.signal.aborted) process.emitWarning(error instanceof Error ? error : String(error));
      return plainly(500, "This request could not be answered: the server's standard error has the reason.");
    });
  const cookies = made.headers.getSetCookie();
  response.writeHead(made.status, {
    ...Object.fromEntries(made.headers),
    ...(cookies.length > 0 && { "set-cookie": cookies }),
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

const senderOf = ({ socket, httpVersionMajor, httpVersionMinor }: Known): Sender => ({
  address: socket.remoteAddress ?? null,
  isHttp10: httpVersionMajor < 1 || (httpVersionMajor === 1 && httpVersionMinor === 0),
});

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
    // A host that is none, or has a password; a method that no Request may have, such as TRACE.
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
  // Nothing was left to read: then somebody else has read it.
  if (length > 0 || body === undefined) return Buffer.concat(parts).toString();
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  return typeof body === "string" ? body : JSON.stringify(body);
}
