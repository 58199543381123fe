// Several calls of one scope can want a lock at the same time. What one of them gets, its scope holds, so the others must
// enter it again. A call that stayed in line instead would wait for its own scope, for ever.

import { OVERLAP_MAX } from "../defaults.ts";
import { DeadlockError } from "../errors.ts";
import { OVERTAKEN } from "../give-up.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Request } from "../terms.ts";
import { onAbort, pause } from "../util/abort.ts";
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
 * the lock by another call, and both may share it, this one leaves the line and resolves with what `enter` makes of that.
 */
export function waitBeside<T>(
  manager: LockManager,
  scopes: Scopes,
  kind: LockKind,
  name: string,
  request: PlacedRequest,
  take: (shared: SharedLease) => T,
  enter: (holding: Holding) => Promise<T>,
): Promise<T | null> {
  if (!request.reentrant) return waitAlone(manager, scopes, kind, name, request, take);
  const key = keyOf(kind.protocol, name);
  return new Promise((resolve) => {
    let leave = (_: unknown): void => {};
    const wanted = [{ kind, name, key }];
    const watch = scopes.watch(wanted, kind.eventKind, request.wait, request.place ?? null, (error) =>
      leave(error),
    );
    let hasEntered = false;
    // RACE: `enter` counts itself among the lock's users in this very statement of the call that got it. A moment later that
    // call may have unlocked it again, and this one would be last in line.
    const unwant = scopes.want([key], (holding) => {
      hasEntered = true;
      forget();
      leave(OVERTAKEN);
      resolve(enter(holding));
    });
    const forget = (): void => {
      unwant();
      watch?.end();
    };
    const came = (waiter: Waiter): void => {
      leave = (reason) => waiter.aborted(reason);
      watch?.came(waiter);
    };
    const mine = (shared: SharedLease): T => {
      forget();
      return take(shared);
    };
    manager.enter(kind, name, { ...request, came }, mine).then(
      async (taken) => {
        const holding = taken === null ? await overtaken(scopes, [key]) : null;
        // RACE: it was told, and has entered, while it looked. To enter twice would leave a user that nobody knows, and the
        // lock would be held for ever.
        if (hasEntered) return;
        forget();
        resolve(holding ? enter(holding) : taken);
      },
      (error: unknown) => {
        forget();
        // Entered already: this is how it left the line, and a rejected promise of nobody's would end the process.
        if (!hasEntered) resolve(error instanceof DeadlockError ? failing(error) : Promise.reject(error));
      },
    );
  });
}

/**
 * Takes all of which the call may enter nothing yet, and hands it to `take`. Resolves with what was busy; null: nothing was.
 * Rejects with OVERTAKEN when the scopes got one of these locks by another call. What was taken is given back then, because
 * the order in which the rest must be taken may have changed.
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
  const acquire = async (signal: AbortSignal | undefined): Promise<Busy | null> => {
    const leases = await acquireAll(manager, members, {
      ...request,
      signal,
      came: (one) => watch?.came(one),
    });
    if ("busy" in leases) return leases;
    take(leases);
    return null;
  };
  const { signal } = request;
  let watch: ReturnType<Scopes["watch"]> = null;
  if (!scopes.current()) return acquire(signal);
  const wanted = members.map((one) => ({ ...one, key: keyOf(one.kind.protocol, one.name) }));
  const keys = wanted.filter(({ reentrant }) => reentrant).map(({ key }) => key);
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
  const unlisten = signal && onAbort(signal, () => controller.abort(signal.reason));
  if (signal?.aborted) controller.abort(signal.reason);
  const told = (holding: Holding): void => {
    if (overtakes(holding)) controller.abort(OVERTAKEN);
  };
  const unwant = scopes.want(hasEntered ? wanted.map(({ key }) => key) : keys, told);
  watch = scopes.watch(wanted, "multi", request.wait, request.place ?? null, (error) =>
    controller.abort(error),
  );
  try {
    // RACE: its scope holds them before this call is forgotten. In between another one, which found them busy, would find
    // neither a lock of its scope nor a call that is about to get it.
    const busy = await acquire(controller.signal);
    if (busy && (await overtaken(scopes, keys))) throw OVERTAKEN;
    return busy;
  } catch (error) {
    throw error instanceof DeadlockError ? thrownAt(error, acquireAllBeside) : error;
  } finally {
    unwant();
    watch?.end();
    unlisten?.();
  }
}

/** Waits for what is not shared in a scope: for permits, and for a lock whose hold the call is to have alone. */
export function waitAlone<T>(
  manager: LockManager,
  scopes: Scopes,
  kind: LockKind,
  name: string,
  request: PlacedRequest,
  take: (shared: SharedLease) => T,
): Promise<T | null> {
  let leave = (_: unknown): void => {};
  const wanted = [{ kind, name, key: keyOf(kind.protocol, name) }];
  const watch = scopes.watch(wanted, kind.eventKind, request.wait, request.place ?? null, (error) =>
    leave(error),
  );
  if (!watch) return manager.enter(kind, name, request, take);
  const came = (waiter: Waiter): void => {
    leave = (reason) => waiter.aborted(reason);
    watch.came(waiter);
  };
  const waiting = manager.enter(kind, name, { ...request, came }, take).finally(() => watch.end());
  return new Promise((resolve) => {
    waiting.then(resolve, (error: unknown) =>
      resolve(error instanceof DeadlockError ? failing(error) : Promise.reject(error)),
    );
  });
}

/**
 * A lock is busy, and another call of this scope wants it: perhaps the lock is busy because that call has just got it. RACE:
 * both answers come in one packet, and the way from its answer to the scope has more steps than ours; or it is a multi-lock
 * whose other members are answered in the next packets. So the scope is asked again a moment later.
 */
async function overtaken(scopes: Scopes, keys: readonly string[]): Promise<Holding | null> {
  const find = (): Holding | null => keys.map((key) => scopes.find(key)).find((one) => one !== null) ?? null;
  let found = find();
  for (const ms of [0, OVERLAP_MAX]) {
    if (found || !scopes.isWantedTwice(keys)) break;
    await pause(ms, undefined);
    found = find();
  }
  return found;
}
