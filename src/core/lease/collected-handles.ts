import { LockError } from "../../api/errors.ts";
import { type Events, fenceOf } from "../../api/events.ts";
import { wordingOf } from "../../api/wording.ts";
import { clocks } from "../../util/clock.ts";
import { duration } from "../../util/duration.ts";
import { quote } from "../../util/quote.ts";
import type { SharedLease } from "./shared-lease.ts";

/**
 * Reports leases whose handle was garbage collected while the watchdog renewed them. No code can
 * unlock such a lease any more, and it is renewed until the process ends. It is only reported: the
 * code that took the lock may still be running, so neither the lock nor its renewal may be given up
 * (docs/decisions/0014).
 */
const registry = new FinalizationRegistry<Collected>(({ lease, events }) => {
  if (lease.held) events.report(new LockError("LOCK_LEFT_BEHIND", lease.name, leftBehind(lease)));
});

interface Collected {
  readonly lease: SharedLease;
  readonly events: Events;
}

/**
 * Registering costs more than the rest of a short hold, so the watchdog does it at the first
 * renewal.
 */
export function watchHandle(handle: object, lease: SharedLease, events: Events): void {
  registry.register(handle, { lease, events }, handle);
}

/** It was unlocked. Another user of the same hold may keep the lock. */
export function unwatchHandle(handle: object): void {
  registry.unregister(handle);
}

function leftBehind(shared: SharedLease): string {
  const { name, since, noun } = shared;
  const { end, form } = wordingOf(noun);
  const token = fenceOf(shared);
  const held = duration(clocks.mono.now() - since);
  const lease = token === null ? "its lease" : `its lease (token ${token})`;
  return (
    `${noun} ${quote(name)} has been held for ${held} and cannot be released any more, because ${lease} was garbage collected ` +
    `without ${end}(), and is renewed until this process ends: ` +
    `use ${form} or \`await using\`, or keep the lease in a variable while the lock is wanted.`
  );
}
