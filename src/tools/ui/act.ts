import { redissonLock } from "../../redisson.ts";
import { json, plainly, type Viewer } from "./guard.ts";
import type { LockUIOptions } from "./options.ts";
import type { Action, Done, ShownHolder } from "./shown.ts";

/** An action that a viewer wants, on a lock as it was shown. */
interface Wanted {
  readonly action: Action;
  readonly kind: string;
  readonly name: string;
  /** The `id` of the holder that was shown: a later holder is not meant. */
  readonly holder: string;
  readonly mode: ShownHolder["mode"];
}

/** Executes an action, if viewers may do that. */
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
    return json(wanted.action === "recall" ? await recall(locks, wanted) : await end(locks, wanted, viewer));
  } catch (error) {
    return json({ done: false, said: error instanceof Error ? error.message : String(error) }, 502);
  }
}

async function recall(locks: LockUIOptions["locks"], { kind, name, mode }: Wanted): Promise<Done> {
  const isRead = kind === "readWrite" && mode === "read";
  if (kind !== "lock" && !isRead) return { done: false, said: NEVER_UNUSED };
  const answer = await (isRead ? locks.readWriteLock(name).read : locks.lock(name)).recall();
  // A writer may hold it by now.
  const said = isRead && answer === "free" ? "No reader holds it." : ANSWERS[answer];
  return { done: answer === "free" || answer === "released", said };
}

const ANSWERS = {
  free: "No process holds it.",
  released: "Its holder did not use it, and has released it.",
  busy: "Its holder uses it.",
  silent: "It is still held: the process that keeps it unused does not answer.",
};

const NEVER_UNUSED =
  "A writer never keeps its lock unused, nor does the holder of a semaphore, an election, a run or Redisson's lock.";

async function end(locks: LockUIOptions["locks"], wanted: Wanted, { label }: Viewer): Promise<Done> {
  const ended = await breakHold(locks, wanted, label === null ? {} : { label: cut(label) });
  if (ended === true || Number(ended) > 0)
    return { done: true, said: "The hold you saw was force-released." };
  return { done: false, said: "The holder that you saw has gone: nothing was done." };
}

async function breakHold(
  locks: LockUIOptions["locks"],
  { kind, name, mode, holder }: Wanted,
  by: { readonly label?: string },
): Promise<boolean | number> {
  const options = { ...by, holder };
  if (kind === "redisson") return redissonLock(locks, name).forceUnlock(options);
  if (kind === "lock") return locks.lock(name).forceUnlock(options);
  if (kind === "semaphore") return locks.semaphore(name).forceUnlock(options);
  if (kind === "election") return locks.election(name).forceResign(options);
  if (kind === "remember") return locks.stopRun(name, options);
  if (kind !== "readWrite") return false;
  return locks.readWriteLock(name)[mode ?? "write"].forceUnlock(options);
}

/** A label has at most 64 bytes. */
function cut(label: string): string {
  let text = label.replace(/\p{Surrogate}/gu, "?");
  while (Buffer.byteLength(text) > 64) text = [...text].slice(0, -1).join("");
  return text;
}

function decode(text: string): Wanted | null {
  try {
    const { action, kind, name, mode, holder } = JSON.parse(text) as Partial<Wanted>;
    if (action !== "recall" && action !== "break") return null;
    if (typeof kind !== "string" || typeof name !== "string" || typeof holder !== "string" || !holder)
      return null;
    return { action, kind, name, holder, mode: mode === "read" || mode === "write" ? mode : null };
  } catch {
    return null;
  }
}
