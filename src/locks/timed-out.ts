import pTimeout from "p-timeout";
import { LockTimeoutError } from "../api/errors.ts";
import type { Party } from "../api/party.ts";
import { nounOf } from "../api/wording.ts";
import { HOLDER_REPLY } from "../defaults.ts";
import type { LockKind } from "../engine/lock-kind.ts";
import type { LockManager } from "../engine/lock-manager.ts";
import { partyOf } from "../redis/party.ts";
import { customTimers } from "../util/real-timers.ts";

/** Where the holder was; how many locks the call wanted together; how many permits of a semaphore. */
interface Details {
  readonly heldBy?: LockTimeoutError["heldBy"];
  readonly members?: number;
  readonly units?: number;
}

/** Looks that are under way, by name: a thousand callers whose time is up together share one. */
const looks = new WeakMap<LockKind, Map<string, Promise<Party | null>>>();

/**
 * Tells a caller that it has waited in vain, and which one holds the lock by one last look. Nobody
 * else pays for that: an answer that named the holder would cost every caller that waits.
 *
 * @throws LockTimeoutError, at the latest `HOLDER_REPLY` ms from now.
 */
export async function timedOut(
  manager: LockManager,
  kind: LockKind,
  name: string,
  wait: number,
  { heldBy = manager.holderOf(kind, name), members = 1, units = 0 }: Details = {},
): Promise<never> {
  const holder = await (heldBy === "somebody else" ? lookAt(manager, kind, name) : here(manager, kind, name));
  throw new LockTimeoutError(name, wait, members, heldBy, units, nounOf(kind), holder);
}

/** What this process knows without asking. */
function here({ selfWait }: LockManager, { protocol }: LockKind, name: string): Party | null {
  const hold = selfWait.leaseOf(protocol, name)?.hold;
  return hold ? partyOf(hold.id + hold.label, hold.token) : null;
}

/** Null: nobody, or Redis does not say so at once. */
async function lookAt(
  { commands, isClosed }: LockManager,
  kind: LockKind,
  name: string,
): Promise<Party | null> {
  // Nothing is sent that would only pile up.
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
