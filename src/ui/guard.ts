import type { Authorize } from "./options.ts";

/** The one that looks: what is told to a holder whose lock this viewer breaks; null: the application has not said. */
export interface Viewer {
  readonly label: string | null;
}

const UNPROTECTED =
  "This page shows which process uses which lock, and is open to this machine alone: give createLockUI() an `authorize` function to open it to others.";

/**
 * Is this request let in? `address`: where it comes from; null: nobody has said. Without `authorize` only a browser of this machine
 * is, which has asked for this machine: a name that somebody else's DNS leads here is refused too, and so is what a proxy has
 * passed on.
 */
export async function admit(
  request: Request,
  address: string | null,
  authorize: Authorize | undefined,
): Promise<Viewer | Response> {
  if (!authorize) {
    return isLocal(request, address) ? { label: null } : plainly(403, UNPROTECTED);
  }
  const answer = await authorize(request);
  if (answer instanceof Response) return answer;
  if (answer === true) return { label: null };
  if (typeof answer === "string" && answer !== "") return { label: answer };
  return plainly(403, "You may not see the locks of this application.");
}

/** Comes it from this machine, for a name of this machine, and straight? */
export function isLocal({ url, headers }: Request, address: string | null): boolean {
  const isProxied = ["forwarded", "x-forwarded-for", "x-real-ip"].some((name) => headers.has(name));
  return address !== null && isLoopback(address) && isLoopback(new URL(url).hostname) && !isProxied;
}

const isLoopback = (address: string): boolean =>
  /^(localhost|.*\.localhost|\[?::1\]?|(::ffff:)?127(\.\d{1,3}){3})$/i.test(address);

/**
 * Comes an action from the page itself? A form of another site can send neither the header nor this type, and a script of
 * another site must ask for the header first, which nobody answers.
 */
export function isFromPage(request: Request): boolean {
  const { headers } = request;
  if (headers.get("x-holdfast") !== "page") return false;
  if (!/^application\/json\b/i.test(headers.get("content-type") ?? "")) return false;
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = headers.get("origin") ?? "";
  const host = headers.get("host") ?? new URL(request.url).host;
  return URL.canParse(origin) && new URL(origin).host === host;
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
