// Several calls of one scope can want a lock at the same time. Once one of them has it, their scope
// holds it, so the others must re-enter it. A call that stayed in line would wait for its own scope
// forever.

import { DeadlockError } from "../api/errors.ts";
import type { EventKind } from "../api/events.ts";
import { OVERTAKEN } from "../api/give-up.ts";
import { failing, thrownAt } from "../api/stacks.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { LockKind, Member } from "../core/lock-kind.ts";
import type { Waiter } from "../core/waiter.ts";
import { DEADLOCK_AFTER } from "../defaults.ts";
import { acquireAll, type Busy } from "../runtime/acquire-all.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { onAbort } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { Timer } from "../util/timers.ts";
import type { CallSite } from "./call-site.ts";
import type { Holding } from "./holding.ts";
import { keyOf } from "./holding.ts";
import type { ReentrantMember } from "./members.ts";
import type { Request } from "./request.ts";
import type { Scopes } from "./scopes.ts";
import { isInTheWay } from "./upgrade.ts";

/**
 * Waits for a lock that the call cannot enter yet, and resolves with the result of `take`. If one
 * of the scopes gets the lock by another call, and both may share it, this call leaves the line and
 * resolves with the result of `enter`. `enter` left out: it shares nothing, as with permits.
 */
export function waitBeside<T>(
  manager: LockManager,
  scopes: Scopes,
  kind: LockKind,
  name: string,
  request: Request,
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
    // RACE: `enter` counts this call among the lock's users in the very statement in which the
    // other call got it. A moment later that call may have unlocked it again, and this one would be
    // last in line.
    const unwant = scopes.want(shares ? [wanted.key] : [], (holding) => {
      // If it has its answer but has not read it yet, that answer counts.
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
        // After it has entered the lock, its own end in the line is ignored.
        if (error instanceof DeadlockError) resolve(failing(error));
        else reject(error);
      },
    );
  });
}

/**
 * Takes all members that the call cannot enter yet, and hands them to `take` in the statement that
 * obtains the last one. Resolves with the busy member, or null: all were taken. Rejects with
 * OVERTAKEN when the scopes got one of these locks by another call. It then gives its locks back,
 * because the order for the others may have changed.
 *
 * `hasEntered`: the call is inside other holds of the scopes. Then OVERTAKEN also applies to a lock
 * that it may not enter, because it must not wait for its own scope while inside them.
 */
export async function acquireAllBeside(
  manager: LockManager,
  scopes: Scopes,
  members: readonly ReentrantMember[],
  request: Request,
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
  // RACE: the call may have waited before, for its turn in a hold that it has entered. It was not
  // notified of locks that the scopes got by other calls in that time, and would wait for its own
  // scope forever. So check them now.
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
 * Call it when a call begins to wait for all of these. Returns an object that follows the call
 * until its end; null: none is needed.
 */
function follow(
  manager: LockManager,
  scopes: Scopes,
  locks: readonly (Pick<Member, "kind" | "name"> & { readonly key: string })[],
  by: EventKind,
  { wait, callSite = null }: Request,
  leave: (error: unknown) => void,
): OwnWait | null {
  const { detector } = scopes;
  const scope = (callSite || detector) && scopes.isUsed && wait > DEADLOCK_AFTER ? scopes.current() : null;
  if (!scope) return null;
  const wanted = (one: Holding): boolean => locks.some(({ key }) => key === one.key);
  const meets = (): Holding | null => [...scope.held()].find(wanted) ?? null;
  // A call that waits for its own scope does not wait as the holder of the scope's locks.
  const held = () => (meets() ? [] : Array.from(scope.held(), ({ shared }) => shared));
  const unwatch = detector?.watch({ locks, kind: by, held, leave }) ?? null;
  return new OwnWait(manager, callSite, meets, unwatch);
}

/**
 * A call that waits in a scope. If one side has `reentrant: false`, it may wait for that scope
 * itself. Either it is work of another caller, which rightly waits; or the code that holds the lock
 * waits for it, and both wait forever. The two look the same, so the call is never refused, and the
 * wait is reported once for each call site.
 */
class OwnWait extends Timer {
  readonly #context: Pick<LockManager, "timers" | "selfWait">;
  readonly #callSite: CallSite | null;
  readonly #meets: () => Holding | null;
  readonly #unwatch: (() => void) | null;
  readonly #since = clocks.mono.now();
  #waiter: Waiter | null = null;

  /**
   * `meets`: its scope's present holds on the locks that it wants. `unwatch`: call it at the end.
   */
  constructor(
    context: Pick<LockManager, "timers" | "selfWait">,
    callSite: CallSite | null,
    meets: () => Holding | null,
    unwatch: (() => void) | null,
  ) {
    super();
    this.#context = context;
    this.#callSite = callSite;
    this.#meets = meets;
    this.#unwatch = unwatch;
    if (callSite) context.timers.set(this, this.#since + DEADLOCK_AFTER);
  }

  /** It now has a waiter at a lock. */
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

  /**
   * Its scope may have got the lock by another call after this one came: report it 5 s after that.
   */
  ring(): void {
    const { timers, selfWait } = this.#context;
    const at = clocks.mono.now();
    const met = this.#meets();
    const due = Math.max(this.#since, met?.shared.since ?? at) + DEADLOCK_AFTER;
    if (at < due) timers.set(this, due);
    else if (met && this.#waiter) {
      const taken = met.how.callSite && `${met.how.callSite}`;
      selfWait.warnOfScope(met.shared.name, this.#waiter, at - this.#since, `${this.#callSite}`, taken);
    }
  }
}
