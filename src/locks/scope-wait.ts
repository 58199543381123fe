// Several calls of one scope can want a lock at the same time. What one of them gets, its scope
// holds, so the others must enter it again. A call that stayed in line instead would wait for its
// own scope, for ever.

import { DeadlockError } from "../api/errors.ts";
import type { EventKind } from "../api/events.ts";
import { OVERTAKEN } from "../api/give-up.ts";
import { failing, thrownAt } from "../api/stacks.ts";
import { DEADLOCK_AFTER } from "../defaults.ts";
import { acquireAll, type Busy } from "../engine/acquire-all.ts";
import type { SharedLease } from "../engine/lease/shared-lease.ts";
import type { Request } from "../engine/lease/terms.ts";
import type { LockKind, Member } from "../engine/lock-kind.ts";
import type { LockManager } from "../engine/lock-manager.ts";
import type { Waiter } from "../engine/waiter.ts";
import { onAbort } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { Timer } from "../util/timers.ts";
import type { Holding } from "./holding.ts";
import type { ReentrantMember } from "./members.ts";
import type { Place } from "./place.ts";
import type { Scopes } from "./scopes.ts";
import { isInTheWay } from "./upgrade.ts";
import { keyOf } from "./with-lock.ts";

/** A call, and where it stands in the application. Left out: nobody needs that. */
export interface PlacedRequest extends Request {
  readonly place?: Place | null;
}

/**
 * Waits for a lock of which the call may enter nothing yet, and resolves with what `take` makes of
 * it. When one of the scopes gets the lock by another call, and both may share it, this one leaves
 * the line and resolves with what `enter` makes of that. `enter` left out: it shares nothing, as
 * with permits.
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
  const watch = follow(manager, scopes, [wanted], kind.eventKind, request, leave);
  const shares = request.reentrant && enter;
  if (!watch && !shares) return manager.enter(kind, name, request, take);
  return new Promise((resolve, reject) => {
    // RACE: `enter` counts itself among the lock's users in this very statement of the call that
    // got it. A moment later that call may have unlocked it again, and this one would be last in
    // line.
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
 * Takes all of which the call may enter nothing yet, and hands it to `take` in the statement that
 * brings the last of them. Resolves with what was busy; null: nothing was. Rejects with OVERTAKEN
 * when the scopes got one of these locks by another call. What was taken is given back then,
 * because the order in which the rest must be taken may have changed.
 *
 * `hasEntered`: the call is inside other holds of the scopes. Then this counts also for a lock that
 * it may not enter, because it must not wait for its own scope so.
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
  // RACE: the call may have waited before, for its turn in what it has entered. Nobody has told it
  // what the scopes got by other calls in that time, and it would wait for its own scope, for ever.
  for (const { key } of wanted) {
    const found = scopes.find(key);
    if (found && overtakes(found)) throw OVERTAKEN;
  }
  const controller = new AbortController();
  const leave = (reason: unknown): void => controller.abort(reason);
  const { signal } = request;
  const unlisten = signal && onAbort(signal, () => leave(signal.reason));
  if (signal?.aborted) leave(signal.reason);
  const watch = follow(manager, scopes, wanted, "multi", request, leave);
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

/**
 * To be called when a call begins to wait for all of these. Returns what follows it until its end;
 * null: nothing does.
 */
function follow(
  manager: LockManager,
  scopes: Scopes,
  locks: readonly (Pick<Member, "kind" | "name"> & { readonly key: string })[],
  by: EventKind,
  { wait, place = null }: PlacedRequest,
  leave: (error: unknown) => void,
): OwnWait | null {
  const { detector } = scopes;
  const scope = (place || detector) && scopes.isUsed && wait > DEADLOCK_AFTER ? scopes.current() : null;
  if (!scope) return null;
  const wanted = (one: Holding): boolean => locks.some(({ key }) => key === one.key);
  const meets = (): Holding | null => [...scope.held()].find(wanted) ?? null;
  // One that waits for its own scope does not wait as the caller that has the scope's locks.
  const held = () => (meets() ? [] : Array.from(scope.held(), ({ shared }) => shared));
  const unwatch = detector?.watch({ locks, kind: by, held, leave }) ?? null;
  return new OwnWait(manager, place, meets, unwatch);
}

/**
 * A call that waits in a scope. Where one side has `reentrant: false`, that scope may be what it
 * waits for. Perhaps it is work of another caller, which rightly waits; perhaps the code that holds
 * the lock waits for it, and both wait without end. No one can tell the two apart, so it is never
 * refused, and told once for each place.
 */
class OwnWait extends Timer {
  readonly #context: Pick<LockManager, "timers" | "selfWait">;
  readonly #place: Place | null;
  readonly #meets: () => Holding | null;
  readonly #unwatch: (() => void) | null;
  readonly #since = clocks.mono.now();
  #waiter: Waiter | null = null;

  /**
   * `meets`: what its scope has at this moment of the locks that it wants. `unwatch`: to be called
   * at its end.
   */
  constructor(
    context: Pick<LockManager, "timers" | "selfWait">,
    place: Place | null,
    meets: () => Holding | null,
    unwatch: (() => void) | null,
  ) {
    super();
    this.#context = context;
    this.#place = place;
    this.#meets = meets;
    this.#unwatch = unwatch;
    if (place) context.timers.set(this, this.#since + DEADLOCK_AFTER);
  }

  /** It has come to a lock. */
  came(waiter: Waiter): void {
    this.#waiter = waiter;
    waiter.own = this;
  }

  /** Does it wait for its own scope? */
  get isOwn(): boolean {
    return this.#meets() !== null;
  }

  end(): void {
    this.#unwatch?.();
    this.#context.timers.clear(this);
  }

  /** Its scope may have got the lock after it came, by another call: it is told 5 s after that. */
  ring(): void {
    const { timers, selfWait } = this.#context;
    const at = clocks.mono.now();
    const met = this.#meets();
    const due = Math.max(this.#since, met?.shared.since ?? at) + DEADLOCK_AFTER;
    if (at < due) timers.set(this, due);
    else if (met && this.#waiter) {
      const taken = met.how.place && `${met.how.place}`;
      selfWait.warnOfScope(met.shared.name, this.#waiter, at - this.#since, `${this.#place}`, taken);
    }
  }
}
