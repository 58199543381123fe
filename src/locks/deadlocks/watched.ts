import type { EventKind } from "../../api/events.ts";
import type { SharedLease } from "../../core/lease/shared-lease.ts";
import { DEADLOCK_AFTER } from "../../defaults.ts";
import { clocks } from "../../util/clock.ts";
import { holdOf, isNoted, type NotedHold, refOf } from "./note.ts";

/** A waiting call in a scope, as the detector sees it, from beginning to end. */
export class Watched {
  readonly id: string;
  readonly wait: ScopedWait;
  readonly since = clocks.mono.now();
  /** When to search next, on the monotonic clock. */
  due = this.since + DEADLOCK_AFTER;
  isOver = false;
  /** The locks that may have its note. */
  noted = new Set<string>();
  /**
   * By the server's clock in µs: when it began to wait, and when its last note was written. 0:
   * unknown.
   */
  began = 0;
  after = 0;
  /** The circle that was found first, and when; and the last one that was judged. */
  suspected: { readonly key: string; readonly at: number } | null = null;
  judged: string | null = null;

  constructor(id: string, wait: ScopedWait) {
    this.id = id;
    this.wait = wait;
  }

  /** The locks that it wants. Computed with its note: most callers get theirs long before. */
  get waits(): string[] {
    const refs = this.wait.locks.flatMap(({ kind: { protocol }, name }) =>
      isNoted(protocol) ? refOf(protocol, name) : [],
    );
    return refs.slice(0, MOST_LOCKS);
  }

  holds(): NotedHold[] {
    const found = new Map<string, NotedHold>();
    for (const lease of this.wait.held()) {
      const { protocol } = lease.owner.kind;
      if (found.size < MOST_LOCKS && isNoted(protocol)) {
        const hold = holdOf(protocol, lease);
        found.set(`${hold.ref} ${hold.turn}`, hold);
      }
    }
    return [...found.values()];
  }
}

/** A call that waits in a scope. */
export interface ScopedWait {
  readonly kind: EventKind;
  /** All the locks that it wants. */
  readonly locks: readonly {
    readonly kind: { readonly protocol: string; readonly mode?: string };
    readonly name: string;
  }[];
  /** What its scope, and those around it, hold at this moment. */
  readonly held: () => Iterable<SharedLease>;
  /** Ends the wait with this error. */
  readonly leave: (error: unknown) => void;
}

/**
 * The limit for the locks that one call waits for, and for those that its scope holds. Others are
 * ignored.
 */
const MOST_LOCKS = 16;
