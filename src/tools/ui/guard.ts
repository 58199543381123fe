import type { Authorize } from "./options.ts";

/**
 * The person at the browser. `label`: shown to a holder whose lock this viewer force-releases; null:
 * the application has given none.
 */
export interface Viewer {
  readonly label: string | null;
}

/**
 * Where a request comes from, by the server's socket and what its connection shows. A server of
 * `Request`s does not see it.
 */
export interface Sender {
  /** Null: a Unix socket. */
  readonly address: string | null;
  /** Does its connection say that no browser has made it? */
  readonly isRelayed: boolean;
}

/** Admits the viewer of a request, or answers the request instead of the page. */
export type Admit = (
  request: Request,
  sender: Sender | null,
) => Viewer | Response | Promise<Viewer | Response>;

const UNPROTECTED =
  "This page shows which process uses which lock, so it is open to browsers of its own machine alone: give createLockUI() an `authorize` function to let in others, or what comes through a proxy.";

/** Admits what `authorize` admits; without that function, browsers of this machine. */
export const admission =
  (authorize: Authorize | undefined): Admit =>
  async (request, sender) => {
    if (!authorize) return isLocal(request, sender) ? { label: null } : plainly(403, UNPROTECTED);
    const answer = await authorize(request);
    if (answer instanceof Response) return sendable(answer);
    if (answer === true) return { label: null };
    if (typeof answer === "string" && answer !== "") return { label: answer };
    return plainly(403, "You may not see the locks of this application.");
  };

/**
 * @throws TypeError for a Response that no server can send. `node:http` would throw where no
 *   handler catches it, and end the process.
 */
function sendable(answer: Response): Response {
  if (answer.bodyUsed || answer.body?.locked)
    throw new TypeError("authorize() returned a Response that was sent before: make one for each request");
  if (answer.status < 200)
    throw new TypeError(
      `authorize() returned a Response that cannot be sent: its status is ${answer.status}`,
    );
  return answer;
}

/**
 * Does the request come from a browser of this machine, for a name of this machine? A name that
 * another DNS server points here is not one. A request that a local proxy forwards does not count,
 * if the proxy shows that by a header, or by its own connection. A proxy that sends exactly what
 * browsers send looks like a browser.
 */
export function isLocal({ url, headers }: Request, sender: Sender | null): boolean {
  const { address = null, isRelayed = true } = sender ?? {};
  if (address === null || isRelayed || [...headers.keys()].some(isOfProxy)) return false;
  return isLoopback(address) && isLoopback(new URL(url).hostname);
}

const isOfProxy = (name: string): boolean =>
  /^(x-forwarded-.*|forwarded|via|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|cdn-loop)$/.test(
    name,
  );

const isLoopback = (address: string): boolean =>
  /^(localhost|.*\.localhost|\[?::1\]?|(::ffff:)?127(\.\d{1,3}){3})$/i.test(address);

/**
 * Does the request come from a page of another origin? That page could not read the answer, and
 * none of its requests may have an effect. A link of another site may open the page in a window.
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
 * Does an action come from the page itself? A form of another site can send neither the header nor
 * this type, and a script of another site must first ask for the header, which is granted to none.
 * Browsers name the origin of each POST.
 */
export function isFromPage(request: Request): boolean {
  const { headers } = request;
  if (headers.get("x-holdfast") !== "page" || isForeign(request)) return false;
  if (!/^application\/json\b/i.test(headers.get("content-type") ?? "")) return false;
  return headers.has("origin");
}

/**
 * Is it an origin of the requested address? Not the scheme: TLS may end at a proxy before this
 * server.
 */
function isOwn(origin: string, { headers, url }: Request): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  const asked = `${protocol}//${headers.get("host") ?? new URL(url).host}`;
  return URL.canParse(asked) && new URL(asked).host === host;
}

const HEADERS = {
  // The page builds everything that it shows as text. It contacts no other host, and may not be
  // framed.
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
