import { type LockTimeoutError, quote } from "../errors.ts";
import type { LockKind } from "./kind.ts";
import type { Place } from "./place.ts";
import type { Room } from "./room.ts";
import type { Waiter } from "./waiter.ts";

/** Where the holder of a lock is, as far as this client knows without asking Redis. */
export function holderOf(
  { watchdog }: Room,
  { protocol }: LockKind,
  name: string,
): LockTimeoutError["heldBy"] {
  for (const tenure of watchdog.tenures())
    if (tenure.name === name && tenure.protocol === protocol && tenure.held) return "this process";
  return "somebody else";
}

/** The commonest self-made deadlock: a caller waits, for longer than a lease, for a lock that its own process keeps holding. */
export function warnSelfWait({ name, kind, room }: Place, waiter: Waiter): void {
  const at = performance.now();
  const waited = at - waiter.since;
  if (waiter.warned || waited < waiter.terms.lease) return;
  const tenures = [...room.watchdog.tenures()];
  const isKept = tenures.some(
    (tenure) =>
      tenure.name === name &&
      tenure.protocol === kind.protocol &&
      Math.min(waited, at - tenure.since.mono) >= waiter.terms.lease,
  );
  if (!isKept) return;
  waiter.warned = true;
  room.events.tell("wait", () => ({
    name,
    kind: waiter.kind,
    call: waiter.call,
    holder: "this client",
    waited,
  }));
  process.emitWarning(
    `A caller has waited ${Math.round(waited)} ms for lock ${quote(name)}, which this process itself holds. If it is called ` +
      "from the code that holds it, that is a deadlock: nest withLock(), or re-enter inside locks.scope().",
    { type: "HoldfastWarning", code: "LOCK_SELF_WAIT" },
  );
}
