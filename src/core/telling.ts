import { LockLostError } from "../api/errors.ts";
import { type Events, ofHolder, ofLoss } from "../api/events.ts";
import { type LossReason, nounOf } from "../api/wording.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import { releaseOutcome } from "./lease/release-outcome.ts";
import type { Departure, LeaseOwner, SharedLease } from "./lease/shared-lease.ts";

// The events of a holder. Times are in ms.

/** `passed`: by a local hand-off. `kept`: it was idle here, and no round trip was needed. */
export function tellAcquired(
  events: Events,
  lease: SharedLease,
  waitedFor: number,
  passed: boolean,
  kept: boolean,
): void {
  if (events.hears("acquire")) events.tell("acquire", { ...ofHolder(lease), waitedFor, passed, kept });
}

export function tellReleased(events: Events, lease: SharedLease, heldFor: number): void {
  if (!lease.isTaken && events.hears("release")) events.tell("release", { ...ofHolder(lease), heldFor });
}

export function tellLost(events: Events, by: Departure, heldFor: number, error: LockLostError): void {
  if (events.hears("lost")) events.tell("lost", ofLoss(by, heldFor, error));
}

/** Whose hold it was. */
interface Teller {
  readonly kind: LeaseOwner["kind"];
  readonly context: { readonly events: Events };
}

/** It was lost with no caller inside: callers that have left may have lost it before that. */
export function tellLostAlone(
  { kind, context }: Teller,
  last: Departure,
  reason: LossReason,
  by: string | null = null,
): void {
  const loss = new LockLostError(last.name, reason, undefined, undefined, by, nounOf(kind));
  tellLost(context.events, last, 0, loss);
}

/** Was the hold lost before its release was answered? Then its last user learns that. */
export function lossOf(
  { kind, context }: Teller,
  by: Departure,
  heldFor: number,
  answer: ReleaseAnswer,
  isBroken: boolean,
): LockLostError | null {
  const loss = releaseOutcome(by.hold, answer, isBroken, kind);
  if (!loss) return null;
  by.lostAtRelease(loss);
  tellLost(context.events, by, heldFor, loss);
  return loss;
}
