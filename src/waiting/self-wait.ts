import { SELF_WAIT_LEASES } from "../defaults.ts";
import { type LockTimeoutError, quote } from "../errors.ts";
import { withoutBits } from "../hold-ids.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { LockKind } from "./lock-kind.ts";
import type { LockManager } from "./lock-manager.ts";
import type { Place } from "./place.ts";
import type { Waiter } from "./waiter.ts";

/** Where the holder of a lock is, as far as this client knows without asking Redis. */
export function holderOf(room: LockManager, kind: LockKind, name: string): LockTimeoutError["heldBy"] {
  return tenureOf(room, kind, name) ? "this process" : "somebody else";
}

/** The clients of this process that are not closed. A client that was only forgotten must not be kept by this. */
const rooms = new Set<WeakRef<LockManager>>();
const lastLooks = new WeakMap<Place, number>();
const lastWarnings = new WeakMap<LockManager, number>();

/** A client takes part from now on. Returns how to end that. */
export function enlist(room: LockManager): () => void {
  const ref = new WeakRef(room);
  rooms.add(ref);
  return () => rooms.delete(ref);
}

/** When a caller that waits for a lock of its own process has waited for so long that it must be called a deadlock. */
export const selfWaitAt = ({ since, terms }: Waiter): number => since + SELF_WAIT_LEASES * terms.lease;

/**
 * Of these callers, the first one that may have been called by the code that holds the lock: a caller that came before the
 * holder got it waits in a plain queue.
 */
export function selfWaiter(callers: Iterable<Waiter>, tenure: SharedLease): Waiter | null {
  for (const waiter of callers) if (waiter.since >= tenure.since.mono) return waiter;
  return null;
}

/**
 * The commonest self-made deadlock: a caller waits for a lock that its own process keeps holding, in this client or in
 * another one. Asked now and then about a lock that callers wait for in Redis; `head` is the first of them.
 */
export function watchSelfWait(place: Place, head: Waiter): void {
  const at = performance.now();
  if (at < selfWaitAt(head) || at - (lastLooks.get(place) ?? 0) < LOOK_EVERY) return;
  lastLooks.set(place, at);
  const { room, kind, name } = place;
  for (const ref of rooms) {
    const other = ref.deref();
    if (!other) rooms.delete(ref);
    const tenure = other && tenureOf(other, kind, name);
    const waiter = tenure && selfWaiter(room.callers(kind, name), tenure);
    if (!waiter || waiter.isWarned || at < selfWaitAt(waiter)) continue;
    if (other === room) warnSelfWait(place, waiter, "this client");
    else void lookCloser(place, waiter, tenure);
  }
}

/** Another client of this process holds a lock with this name: is it the same lock, or one on another server? */
async function lookCloser(place: Place, waiter: Waiter, { hold }: SharedLease): Promise<void> {
  const inspection = await place.kind.inspect(place.name).catch(() => null);
  // Owners in Redisson's protocol begin with an id of their own; the number of the hold is the same.
  const number = (id: string): string => id.slice(id.lastIndexOf(":"));
  if (!inspection?.holder || number(inspection.holder) !== number(withoutBits(hold.id))) return;
  if (!waiter.settled && !waiter.isWarned) warnSelfWait(place, waiter, "this process");
}

/** An event for every such caller; a process warning at most once a minute for each client. */
export function warnSelfWait(
  { room, name }: Place,
  waiter: Waiter,
  holder: "this client" | "this process",
): void {
  const at = performance.now();
  const waited = at - waiter.since;
  const { kind, call } = waiter;
  waiter.isWarned = true;
  room.events.tell("wait", () => ({ name, kind, call, holder, waited }));
  if (at - (lastWarnings.get(room) ?? Number.NEGATIVE_INFINITY) < MINUTE) return;
  lastWarnings.set(room, at);
  const [where, cure] =
    holder === "this client"
      ? ["this process itself", "nest withLock(), or re-enter inside locks.scope()"]
      : ["another lock client of this process", "use one client for both, and nest withLock()"];
  process.emitWarning(
    `A caller has waited ${Math.round(waited)} ms for lock ${quote(name)}, which ${where} holds. If it is called ` +
      `from the code that holds it, that is a deadlock: ${cure}.`,
    { type: "HoldfastWarning", code: "LOCK_SELF_WAIT" },
  );
}

function tenureOf({ watchdog }: LockManager, { protocol }: LockKind, name: string): SharedLease | null {
  for (const tenure of watchdog.tenures())
    if (tenure.name === name && tenure.protocol === protocol && tenure.held) return tenure;
  return null;
}

const MINUTE = 60_000;
const LOOK_EVERY = 1_000;
