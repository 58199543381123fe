import type { Caller, EventKind, Events } from "../api/events.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { LockKind } from "./lock-kind.ts";
import { follow } from "./telemetry/following.ts";
import type { AcquireRequest } from "./waiter.ts";

// `enter` for calls that a subscriber of a channel follows.

/** The way in to a lock. */
interface Door {
  readonly events: Events;
  newCaller(kind: EventKind): Caller;
  enter<T>(
    kind: LockKind,
    name: string,
    request: AcquireRequest,
    take: (lease: SharedLease) => T,
  ): Promise<T | null>;
}

/**
 * Goes in, while somebody follows calls. It is named to the door as a caller, so that nobody
 * follows it twice.
 */
export function enterFollowed<T>(
  door: Door,
  kind: LockKind,
  name: string,
  request: AcquireRequest,
  take: (lease: SharedLease) => T,
): Promise<T | null> {
  const { terms, wait } = request;
  const by = { ...door.newCaller(kind.eventKind), units: terms.permits?.units };
  return follow(door.events, by, { name, wait, lease: terms.lease }, (got) =>
    door.enter(kind, name, { ...request, by }, (lease) => {
      got(lease);
      return take(lease);
    }),
  );
}
