import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { plainly } from "./guard.ts";

/** What frameworks make of a request, beside what Node.js does. */
interface Known extends IncomingMessage {
  /** The path before a router cut its own off. */
  readonly originalUrl?: string;
  /** A body that was read and parsed before. */
  readonly body?: unknown;
}

/** No action needs more. */
const BODY_MAX = 8_192;

/** Serves a request of `node:http`, Express, Koa and others by what serves a Request. */
export async function serve(
  answer: (request: Request, address: string | null) => Promise<Response>,
  incoming: Known,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const request = await requestOf(incoming, gone.signal);
  const made =
    request instanceof Response ? request : await answer(request, incoming.socket.remoteAddress ?? null);
  response.writeHead(made.status, Object.fromEntries(made.headers));
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

async function requestOf(incoming: Known, signal: AbortSignal): Promise<Request | Response> {
  const { method = "GET", headers, url = "/", originalUrl = url } = incoming;
  const place = `http://${headers.host ?? "unknown"}${originalUrl.startsWith("/") ? originalUrl : "/"}`;
  if (!URL.canParse(place)) return plainly(400, "This request names no host.");
  const fields = new Headers();
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !name.startsWith(":")) fields.set(name, [value].flat().join(", "));
  const body = method === "POST" ? await bodyOf(incoming) : null;
  if (body === undefined) return plainly(413, "No action is so long.");
  return new Request(place, { method, headers: fields, body, signal });
}

async function bodyOf(incoming: Known): Promise<string | undefined> {
  if (incoming.body !== undefined) return JSON.stringify(incoming.body);
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of incoming) {
    length += part.length;
    if (length > BODY_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}
