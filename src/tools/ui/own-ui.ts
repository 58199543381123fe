import { createHash, timingSafeEqual } from "node:crypto";
import { type Admit, isLocal, plainly, respond } from "./guard.ts";
import { type LockUI, lockUI } from "./lock-ui.ts";
import type { LockUIOptions } from "./options.ts";

/** The user who started a page, and is the only one to see it. */
export interface Owner {
  /** A browser that knows it is let in. It stands in the address that is printed, as `?word=`. */
  readonly word: string;
  /** The viewer's name, for the holder of a lock that it breaks. */
  readonly label: string;
}

const CLOSED =
  "This page is open to the one who started it: open the whole address that it printed, by pasting it where addresses are typed.";

/**
 * A page at a port of its own, for browsers of this machine that have opened its address with the
 * word. They get the word as a cookie, so it leaves the address bar, and other users of the
 * machine, and what a proxy lets in, are shown nothing.
 */
export const createOwnUI = (options: Omit<LockUIOptions, "authorize">, owner: Owner): LockUI =>
  lockUI(options, admitOwner(owner));

const admitOwner =
  ({ word, label }: Owner): Admit =>
  (request, sender) => {
    const { searchParams, port } = new URL(request.url);
    // Cookies know no ports: pages at two of them shall not take each other's.
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

/** All of this name: whatever else this machine serves may have set one too. */
const cookies = ({ headers }: Request, name: string): string[] =>
  (headers.get("cookie") ?? "")
    .split(/; */)
    .flatMap((one) => (one.startsWith(`${name}=`) ? one.slice(name.length + 1) : []));

/** In a time that tells nothing of where they differ, nor of how long they are. */
function isSame(given: string, word: string): boolean {
  const [one, other] = [given, word].map((text) => createHash("sha256").update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
