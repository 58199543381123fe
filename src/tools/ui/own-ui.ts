import { createHash, timingSafeEqual } from "node:crypto";
import type { Demo } from "./demo.ts";
import { type Admit, isLocal, plainly, respond } from "./guard.ts";
import { type LockUI, lockUI } from "./lock-ui.ts";
import type { LockUIOptions } from "./options.ts";

/** The user who started a page, and alone may see it. */
export interface Owner {
  /** A browser that knows it is admitted. It is part of the printed address, as `?word=`. */
  readonly word: string;
  /** The viewer's name, for the holder of a lock that this viewer force-releases. */
  readonly label: string;
}

const CLOSED =
  "This page is open to the one who started it: open the whole address that it printed, by pasting it where addresses are typed.";

/**
 * A page at a port of its own, for browsers of this machine that have opened its address with the
 * word. They get the word as a cookie, so it leaves the address bar. Other users of the machine, and
 * requests through a proxy, see nothing.
 */
export const createOwnUI = (
  options: Omit<LockUIOptions, "authorize">,
  owner: Owner,
  demo: Demo | null = null,
): LockUI => lockUI(options, admitOwner(owner), demo);

const admitOwner =
  ({ word, label }: Owner): Admit =>
  (request, sender) => {
    const { searchParams, port } = new URL(request.url);
    // Cookies ignore ports: pages at two ports must not use each other's.
    const name = `holdfast-${port || "80"}`;
    if (!isLocal(request, sender)) return plainly(403, CLOSED);
    const given = searchParams.get("word");
    if (given !== null && request.method === "GET" && isSame(given, word))
      return respond(null, "text/plain; charset=utf-8", 303, {
        location: "/",
        "set-cookie": `${name}=${word}; HttpOnly; SameSite=Strict; Path=/`,
      });
    return cookies(request, name).some((one) => isSame(one, word)) ? { label } : plainly(403, CLOSED);
  };

/** All cookies of this name: another server of this machine may have set one too. */
const cookies = ({ headers }: Request, name: string): string[] =>
  (headers.get("cookie") ?? "")
    .split(/; */)
    .flatMap((one) => (one.startsWith(`${name}=`) ? one.slice(name.length + 1) : []));

/** Takes a time that does not depend on where they differ, nor on their lengths. */
function isSame(given: string, word: string): boolean {
  const [one, other] = [given, word].map((text) => createHash("sha256").update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
