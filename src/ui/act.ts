import { redissonLock } from "../redisson/index.ts";
import { json, plainly, type Viewer } from "./guard.ts";
import type { LockUIOptions } from "./options.ts";
import type { Action, Done, ShownHolder } from "./shown.ts";

/** What a viewer wants to be done, of a lock as it was shown. */
interface Wanted {
  readonly action: Action;
  readonly kind: string;
  readonly name: string;
  /** Of the holder that was seen: no later one is meant. */
  readonly token: number;
  readonly mode: ShownHolder["mode"];
  /** The same of a Redisson lock, which has no tokens; "": not told. */
  readonly holder: string;
}

/** Does what the page was asked for, if its viewers may do that. */
export async function act(
  { locks, actions = [] }: LockUIOptions,
  viewer: Viewer,
  request: Request,
): Promise<Response> {
  const wanted = decode(await request.text());
  if (!wanted) return plainly(400, "This is no action of the page.");
  if (!actions.includes(wanted.action))
    return plainly(403, "This page only shows: its application has allowed no such action.");
  try {
    return json(wanted.action === "ask" ? await ask(locks, wanted) : await end(locks, wanted, viewer));
  } catch (error) {
    return json({ done: false, said: error instanceof Error ? error.message : String(error) }, 502);
  }
}

async function ask(locks: LockUIOptions["locks"], { kind, name, mode }: Wanted): Promise<Done> {
  const isRead = kind === "readWrite" && mode === "read";
  if (kind !== "lock" && !isRead)
    return { done: false, said: "Only locks, and what readers share, can be kept with nobody inside." };
  const answer = await (isRead ? locks.readWriteLock(name).read : locks.lock(name)).ask();
  // A writer may have it by now.
  const said = isRead && answer === "free" ? "No reader holds it." : ANSWERS[answer];
  return { done: answer === "free" || answer === "released", said };
}

const ANSWERS = {
  free: "Nobody holds it.",
  released: "It was kept with nobody inside, and has been given up.",
  busy: "Somebody is inside.",
  silent: "It is kept, and not given up: a process that keeps it does not answer.",
};

async function end(locks: LockUIOptions["locks"], wanted: Wanted, { label }: Viewer): Promise<Done> {
  const ended = await breakHold(locks, wanted, label === null ? {} : { label: cut(label) });
  if (ended === null)
    return { done: false, said: "Nothing tells this holder from the next one: nothing was done." };
  if (ended === true || Number(ended) > 0) return { done: true, said: "The hold that you saw is ended." };
  return { done: false, said: "The holder that you saw has gone: nothing was done." };
}

/** Null: nothing says which one is meant. */
async function breakHold(
  locks: LockUIOptions["locks"],
  { kind, name, token, mode, holder }: Wanted,
  by: { readonly label?: string },
): Promise<boolean | number | null> {
  if (kind === "redisson")
    return holder === "" ? null : redissonLock(locks, name).forceUnlock({ ...by, holder });
  const options = { ...by, token };
  if (kind === "lock") return locks.lock(name).forceUnlock(options);
  if (kind === "semaphore") return locks.semaphore(name).forceUnlock(options);
  if (kind === "election") return locks.election(name).forceResign(options);
  if (kind !== "readWrite") return null;
  return locks.readWriteLock(name)[mode ?? "write"].forceUnlock(options);
}

/** Labels have 64 bytes at the most. */
function cut(label: string): string {
  let text = label.replace(/\p{Surrogate}/gu, "?");
  while (Buffer.byteLength(text) > 64) text = [...text].slice(0, -1).join("");
  return text;
}

function decode(text: string): Wanted | null {
  try {
    const { action, kind, name, token, mode, holder = "" } = JSON.parse(text) as Partial<Wanted>;
    const isAction = action === "ask" || action === "break";
    if (!isAction || typeof kind !== "string" || typeof name !== "string" || typeof token !== "number")
      return null;
    if (typeof holder !== "string") return null;
    return { action, kind, name, token, holder, mode: mode === "read" || mode === "write" ? mode : null };
  } catch {
    return null;
  }
}
