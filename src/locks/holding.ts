import { tell, thrownAt } from "../api/stacks.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { LocalSemaphore } from "../util/local-semaphore.ts";
import type { CallSite } from "./call-site.ts";
import type { Request } from "./request.ts";

/** A lock that a scope holds. */
export class Holding {
  readonly key: string;
  readonly shared: SharedLease;
  readonly how: Taken;
  #gate: LocalSemaphore | null = null;

  constructor(key: string, shared: SharedLease, how: Taken) {
    this.key = key;
    this.shared = shared;
    this.how = how;
  }

  /** Nested bodies borrow it through this gate, one at a time. */
  get gate(): LocalSemaphore {
    this.#gate ??= new LocalSemaphore();
    return this.#gate;
  }

  /**
   * The same for another lease of the same scope at this lock: bodies borrow both through one gate.
   */
  of(shared: SharedLease): Holding {
    const holding = new Holding(this.key, shared, this.how);
    holding.#gate = this.gate;
    return holding;
  }
}

/** How the scope took a lock. */
export interface Taken {
  /**
   * Taken in the order of keys, or borrowed in that order: the call may wait for later locks, and
   * for no earlier one.
   */
  readonly isOrdered: boolean;
  /** May calls of the scope enter it? */
  readonly isReentrant: boolean;
  /** The line of the application that took it. Null: no check needed it then. */
  readonly callSite: CallSite | null;
}

/** The key of a lock in scopes: `lock` and `fairLock` of one name are one lock. */
export function keyOf(protocol: LockKind["protocol"], name: string): string {
  return `${protocol} ${name}`;
}

/** No work may begin under a lock that its scope has lost. */
export function assertKept(shared: SharedLease): void {
  shared.expire();
  if (shared.loss) throw tell(thrownAt(shared.loss, assertKept));
}

/** A longer explicit lease extends the scope's hold; a shorter one, or none, changes nothing. */
export async function lengthen(shared: SharedLease, request: Request): Promise<void> {
  if (request.explicit !== null && request.explicit > shared.left()) await shared.extend(request.explicit);
  assertKept(shared);
}
