// Several calls of one scope can want a lock at the same time. What one of them gets, its scope holds, so the others must
// enter it again. A call that stayed in line instead would wait for its own scope, for ever.
import { DeadlockError } from "../deadlock-error.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { OVERTAKEN } from "../overtaken.ts";
import type { Request } from "../terms.ts";
import { onAbort } from "../util/abort.ts";
import { failing, thrownAt } from "../util/stacks.ts";
import { acquireAll, type Busy } from "../waiting/acquire-all.ts";
import type { LockKind } from "../waiting/lock-kind.ts";
import type { LockManager } from "../waiting/lock-manager.ts";
import type { Waiter } from "../waiting/waiter.ts";
import type { Holding } from "./holding.ts";
import type { ReentrantMember } from "./members.ts";
import { isInTheWay } from "./modes.ts";
import type { Place } from "./own-wait.ts";
import type { Scopes } from "./scope.ts";
import { keyOf } from "./with-lock.ts";

/** A call, and where it stands in the application. Left out: nobody needs that. */
export interface PlacedRequest extends Request {
  readonly place?: Place | null;
}

/**
 * Waits for a lock of which the call may enter nothing yet, and resolves with what `take` makes of it. When one of the scopes gets
 * the lock by another call, and both may share it, this one leaves the line and resolves with what `enter` makes of that. `enter`
 * left out: it shares nothing, as with permits.
 */
export function waitBeside<T>(
  manager: LockManager,
  scopes: Scopes,
  kind: LockKind,
  name: string,
  request: PlacedRequest,
  take: (shared: SharedLease) => T,
  enter?: (holding: Holding) => Promise<T>,
): Promise<T | null> {
  const wanted = { kind, name, key: keyOf(kind.protocol, name) };
  let waiter: Waiter | null = null;
  const leave = (reason: unknown): void => waiter?.aborted(reason);
  const watch = scopes.watch([wanted], kind.eventKind, request.wait, request.place ?? null, leave);
  const shares = request.reentrant && enter;
  if (!watch && !shares) return manager.enter(kind, name, request, take);
  return new Promise((resolve, reject) => {
    // RACE: `enter` counts itself among the lock's users in this very statement of the call that got it. A moment later that
    // call may have unlocked it again, and this one would be last in line.
    const unwant = scopes.want(shares ? [wanted.key] : [], (holding) => {
      // An answer that it has, and has not read yet, stands.
      if (!shares || waiter?.settled) return;
      end();
      resolve(shares(holding));
      leave(OVERTAKEN);
    });
    const end = (): void => {
      unwant();
      watch?.end();
    };
    const came = (one: Waiter): void => {
      waiter = one;
      watch?.came(one);
    };
    const mine = (shared: SharedLease): T => {
      end();
      return take(shared);
    };
    manager.enter(kind, name, { ...request, came }, mine).then(
      (taken) => {
        end();
        resolve(taken);
      },
      (error: unknown) => {
        end();
        // Of one that has entered nobody hears how it left the line.
        if (error instanceof DeadlockError) resolve(failing(error));
        else reject(error);
      },
    );
  });
}

/**
 * Takes all of which the call may enter nothing yet, and hands it to `take` in the statement that brings the last of them.
 * Resolves with what was busy; null: nothing was. Rejects with OVERTAKEN when the scopes got one of these locks by another
 * call. What was taken is given back then, because the order in which the rest must be taken may have changed.
 *
 * `hasEntered`: the call is inside other holds of the scopes. Then this counts also for a lock that it may not enter, because it must
 * not wait for its own scope so.
 */
export async function acquireAllBeside(
  manager: LockManager,
  scopes: Scopes,
  members: readonly ReentrantMember[],
  request: PlacedRequest,
  hasEntered: boolean,
  take: (leases: readonly SharedLease[]) => void,
): Promise<Busy | null> {
  if (!scopes.current()) return acquireAll(manager, members, request, take);
  const wanted = members.map((one) => ({ ...one, key: keyOf(one.kind.protocol, one.name) }));
  const overtakes = ({ key, shared }: Holding): boolean =>
    wanted.some(
      (one) =>
        one.key === key &&
        (one.reentrant || (hasEntered && request.wait > 0 && isInTheWay(one.kind, shared))),
    );
  // RACE: the call may have waited before, for its turn in what it has entered. Nobody has told it what the scopes got by other
  // calls in that time, and it would wait for its own scope, for ever.
  for (const { key } of wanted) {
    const found = scopes.find(key);
    if (found && overtakes(found)) throw OVERTAKEN;
  }
  const controller = new AbortController();
  const leave = (reason: unknown): void => controller.abort(reason);
  const { signal } = request;
  const unlisten = signal && onAbort(signal, () => leave(signal.reason));
  if (signal?.aborted) leave(signal.reason);
  const watch = scopes.watch(wanted, "multi", request.wait, request.place ?? null, leave);
  const keys = wanted.filter(({ reentrant }) => reentrant || hasEntered).map(({ key }) => key);
  const unwant = scopes.want(keys, (holding) => {
    if (overtakes(holding)) leave(OVERTAKEN);
  });
  const mine = (leases: readonly SharedLease[]): void => {
    unwant();
    take(leases);
  };
  const came = (one: Waiter): void => watch?.came(one);
  try {
    return await acquireAll(manager, members, { ...request, signal: controller.signal, came }, mine);
  } catch (error) {
    throw error instanceof DeadlockError ? thrownAt(error, acquireAllBeside) : error;
  } finally {
    unwant();
    watch?.end();
    unlisten?.();
  }
}
