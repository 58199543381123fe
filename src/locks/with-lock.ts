import { LockLostError } from "../api/errors.ts";
import type { Events } from "../api/events.ts";
import { tell } from "../api/stacks.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { Taken } from "./holding.ts";
import type { Loan } from "./loan.ts";
import { Scope } from "./scope.ts";
import type { Scopes } from "./scopes.ts";

/** A handle that its user gives back. */
interface Leaver {
  leave(): Promise<void>;
}

interface BodyScope {
  readonly scopes: Scopes;
  readonly events: Events;
  /** Must Redis confirm at the end that they were held until then? */
  readonly confirm: boolean;
  /** The part that this call has acquired itself. Null: nothing. */
  readonly own: SharedLease | null;
  /** The part that it has borrowed. Null: nothing. */
  readonly loan: Loan | null;
}

/** A body's share in one lock, and how it was taken. */
export type BodyHold = readonly [key: string, shared: SharedLease, how: Taken];

/**
 * Runs a body in its own scope that holds these locks, by their keys, and gives the lease back. A
 * call that has entered them in the body keeps them until it leaves. `before`: may refuse the body.
 */
export async function runBody<L extends Leaver, T>(
  { scopes, events, confirm, own, loan }: BodyScope,
  held: readonly BodyHold[],
  lease: L,
  body: (lease: L) => T | PromiseLike<T>,
  before: (() => Promise<unknown>) | null,
): Promise<T> {
  const scope = new Scope(scopes.current());
  for (const [key, shared, how] of held) scope.hold(key, shared, how);
  let outcome: { readonly value: T } | { readonly error: unknown };
  try {
    if (before) await before();
    const go = () => scopes.run(scope, () => body(lease));
    outcome = { value: await (own && events.holds ? events.holds.within(own, go) : go()) };
  } catch (error) {
    outcome = { error };
  }
  // First: no call enters through this scope while Redis is asked whether the lock was held.
  scope.leave();
  // A release that Redis did not confirm is tried again until the lease ends. The body ran under
  // the lock, so its outcome is the answer unless the caller asked for confirmation.
  const unlocking = confirm ? unlockAndSay(held, lease) : lease.leave();
  try {
    await unlocking;
  } catch (failure) {
    for (const error of failure instanceof AggregateError ? failure.errors : [failure]) {
      if (error instanceof LockLostError) continue;
      if (confirm && "value" in outcome) outcome = { error };
      else events.report(error);
    }
  }
  loan?.end();
  for (const [, { loss }] of held) {
    if (!loss) continue;
    tell(loss);
    if (!("error" in outcome)) throw loss;
    const { error } = outcome;
    throw held.some(([, one]) => one.loss === error) ? error : loss.causedBy(error);
  }
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** Unlocks, and rejects when Redis does not confirm that all of these were held until then. */
async function unlockAndSay(held: readonly BodyHold[], lease: Leaver): Promise<void> {
  const said = await Promise.allSettled(held.map(([, shared]) => shared.confirm()));
  await lease.leave();
  for (const one of said) if (one.status === "rejected") throw one.reason;
}
