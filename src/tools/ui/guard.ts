import type { Authorize } from "./options.ts";

/**
 * The one that looks: what is told to a holder whose lock this viewer breaks; null: the application
 * has not said.
 */
export interface Viewer {
  readonly label: string | null;
}

/**
 * Where a request comes from, as the server's socket and its first line say; what serves only
 * `Request`s does not see it.
 */
export interface Sender {
  /** Null: a Unix socket. */
  readonly address: string | null;
  readonly isHttp10: boolean;
}

/** Decides about a request: who is it, or what is it answered instead of the page? */
export type Admit = (
  request: Request,
  sender: Sender | null,
) => Viewer | Response | Promise<Viewer | Response>;

const UNPROTECTED =
  "This page shows which process uses which lock, so it is open to browsers of its own machine alone: give createLockUI() an `authorize` function to let in others, or what comes through a proxy.";

/** Lets in what `authorize` lets in; without that function, browsers of this machine. */
export const admission =
  (authorize: Authorize | undefined): Admit =>
  async (request, sender) => {
    if (!authorize) return isLocal(request, sender) ? { label: null } : plainly(403, UNPROTECTED);
    const answer = await authorize(request);
    if (answer instanceof Response) return answer;
    if (answer === true) return { label: null };
    if (typeof answer === "string" && answer !== "") return { label: answer };
    return plainly(403, "You may not see the locks of this application.");
  };

/**
 * Does a browser of this machine ask for this machine? A name that somebody else's DNS leads here
 * is not this machine's. Nor is what a proxy of this machine hands on, where it says so: by a
 * header, or by HTTP/1.0, which no browser speaks. One that says nothing cannot be told from a
 * browser.
 */
export function isLocal({ url, headers }: Request, sender: Sender | null): boolean {
  const { address = null, isHttp10 = true } = sender ?? {};
  if (address === null || isHttp10 || [...headers.keys()].some(isOfProxy)) return false;
  return isLoopback(address) && isLoopback(new URL(url).hostname);
}

const isOfProxy = (name: string): boolean =>
  /^(x-forwarded-.*|forwarded|via|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|cdn-loop)$/.test(
    name,
  );

const isLoopback = (address: string): boolean =>
  /^(localhost|.*\.localhost|\[?::1\]?|(::ffff:)?127(\.\d{1,3}){3})$/i.test(address);

/**
 * Did a page of another origin have the browser send this? It could not read the answer, and none
 * of its requests may do anything. A link of another site may lead to the page, in a window of its
 * own.
 */
export function isForeign(request: Request): boolean {
  const { headers } = request;
  const origin = headers.get("origin");
  if (origin !== null && !isOwn(origin, request)) return true;
  const site = headers.get("sec-fetch-site") ?? "none";
  if (site === "same-origin" || site === "none") return false;
  return headers.get("sec-fetch-mode") !== "navigate" || headers.get("sec-fetch-dest") !== "document";
}

/**
 * Comes an action from the page itself? A form of another site can send neither the header nor this
 * type, and a script of another site must ask for the header first, which is granted to none.
 * Browsers name the origin of each POST.
 */
export function isFromPage(request: Request): boolean {
  const { headers } = request;
  if (headers.get("x-holdfast") !== "page" || isForeign(request)) return false;
  if (!/^application\/json\b/i.test(headers.get("content-type") ?? "")) return false;
  return headers.has("origin");
}

/**
 * Is it an origin of the address that was asked for? Not the scheme: what ends TLS may stand before
 * this server.
 */
function isOwn(origin: string, { headers, url }: Request): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  const asked = `${protocol}//${headers.get("host") ?? new URL(url).host}`;
  return URL.canParse(asked) && new URL(asked).host === host;
}

const HEADERS = {
  // The page builds all that it shows as text. It asks no other host, and stands in no frame.
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

export const respond = (
  body: string | ReadableStream<Uint8Array> | null,
  type: string,
  status = 200,
  more: Record<string, string> = {},
): Response => new Response(body, { status, headers: { ...HEADERS, "content-type": type, ...more } });

export const plainly = (status: number, text: string): Response =>
  respond(`${text}\n`, "text/plain; charset=utf-8", status);

export const json = (body: unknown, status = 200): Response =>
  respond(JSON.stringify(body), "application/json; charset=utf-8", status);
