// What every kind of lock does with leases: handles for them, nested acquisitions, bodies.
import { LockLostError } from "../api/errors.ts";
import type { Events } from "../api/events.ts";
import { thrownAt } from "../api/stacks.ts";
import type { SharedLease } from "../engine/lease/shared-lease.ts";
import type { Request } from "../engine/lease/terms.ts";
import type { LockKind } from "../engine/lock-kind.ts";
import { quoteAll } from "../util/quote.ts";
import type { Taken } from "./holding.ts";
import type { Loan } from "./loan.ts";
import { Scope } from "./scope.ts";
import type { Scopes } from "./scopes.ts";

/** By what scopes know a lock: `lock` and `fairLock` of one name are one lock. */
export function keyOf(protocol: LockKind["protocol"], name: string): string {
  return `${protocol} ${name}`;
}

/** Nothing new may begin under a lock that its scope has lost. */
export function assertKept(shared: SharedLease): void {
  shared.expire();
  if (shared.loss) throw thrownAt(shared.loss, assertKept);
}

/**
 * A longer lease extends what the scope holds; a shorter one never shortens it, and none leaves it
 * as it is.
 */
export async function lengthen(shared: SharedLease, request: Request): Promise<void> {
  if (request.explicit !== null && request.explicit > shared.left()) await shared.extend(request.explicit);
  assertKept(shared);
}

/**
 * A lock has no unlock: Redisson's idiom would release whatever this process holds by then.
 * JavaScript callers are told what to do.
 */
export function noUnlock(names: readonly string[]): TypeError {
  return new TypeError(
    `Cannot unlock ${quoteAll(names)}: a lock has no unlock(); keep the lease that tryLock() or lock() gave, and call lease.unlock()`,
  );
}

/** A handle that its user gives back. */
interface Leaver {
  leave(): Promise<void>;
}

interface BodyScope {
  readonly scopes: Scopes;
  readonly events: Events;
  /** Must Redis say at the end that they were held so far? */
  readonly confirm: boolean;
  /** What this call has acquired, and not borrowed. Null: nothing. */
  readonly own: SharedLease | null;
  /** What it has borrowed. Null: nothing. */
  readonly loan: Loan | null;
}

/** What a body has of one lock, and how it has it. */
export type BodyHold = readonly [key: string, shared: SharedLease, how: Taken];

/**
 * Runs a body in a scope of its own that holds these locks, by their keys, and gives the lease
 * back. A call that has entered them in the body keeps them until it leaves. `before`: what may
 * refuse the body.
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
  // First: no call comes in through this scope while Redis is asked whether the lock was held.
  scope.leave();
  // What Redis did not confirm is tried again until the lease ends; the body ran under the lock,
  // and that is the answer, where the caller does not want to know.
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
    if (loss && "error" in outcome) throw outcome.error === loss ? loss : loss.causedBy(outcome.error);
    if (loss) throw loss;
  }
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** Unlocks, and rejects when Redis does not say that all of these were held so far. */
async function unlockAndSay(held: readonly BodyHold[], lease: Leaver): Promise<void> {
  const said = await Promise.allSettled(held.map(([, shared]) => shared.confirm()));
  await lease.leave();
  for (const one of said) if (one.status === "rejected") throw one.reason;
}
