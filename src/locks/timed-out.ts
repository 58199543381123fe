// The error of a caller whose time to wait is over.
import pTimeout from "p-timeout";
import { LockTimeoutError } from "../api/errors.ts";
import type { Party } from "../api/party.ts";
import { nounOf } from "../api/wording.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { HOLDER_REPLY } from "../defaults.ts";
import { partyOf } from "../redis/party.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { customTimers } from "../util/real-timers.ts";

/**
 * Where the holder was; how many locks the call wanted together; how many permits of a semaphore.
 */
interface Details {
  readonly heldBy?: LockTimeoutError["heldBy"];
  readonly members?: number;
  readonly units?: number;
}

/** Queries under way, by name: a thousand callers whose time is over together share one. */
const looks = new WeakMap<LockKind, Map<string, Promise<Party | null>>>();

/**
 * Rejects a caller that has waited without success, and names the holder by one last query. Only
 * that caller pays for it: an answer that always named the holder would cost every waiting caller.
 *
 * @throws LockTimeoutError, at most `HOLDER_REPLY` ms from now.
 */
export async function timedOut(
  manager: LockManager,
  kind: LockKind,
  name: string,
  wait: number,
  { heldBy = manager.holderOf(kind, name), members = 1, units = 0 }: Details = {},
): Promise<never> {
  const holder = await (heldBy === "somebody else" ? lookAt(manager, kind, name) : here(manager, kind, name));
  const [deaf = null] = manager.inbox.subscriptions.deafness();
  throw new LockTimeoutError(name, wait, members, heldBy, units, nounOf(kind), holder, deaf);
}

/** What this process knows without a round trip. */
function here({ selfWait }: LockManager, { protocol }: LockKind, name: string): Party | null {
  const hold = selfWait.leaseOf(protocol, name)?.hold;
  return hold ? partyOf(hold.id + hold.label, hold.token) : null;
}

/** Null: the lock is free, or Redis does not answer at once. */
async function lookAt(
  { commands, isClosed }: LockManager,
  kind: LockKind,
  name: string,
): Promise<Party | null> {
  // Send nothing: it would only pile up.
  if (commands.isAway || commands.ended || isClosed) return null;
  const own = looks.get(kind) ?? new Map<string, Promise<Party | null>>();
  looks.set(kind, own);
  let look = own.get(name);
  if (!look) {
    const inspected = kind.holder(name);
    const holder = inspected.then((seen) => seen.holder).catch(() => null);
    look = pTimeout(holder, { milliseconds: HOLDER_REPLY, fallback: () => null, customTimers });
    own.set(name, look);
    void look.then(() => own.delete(name));
  }
  return look;
}
