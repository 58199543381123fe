import type { Events } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import type { Watchdog } from "../lease/watchdog.ts";
import type { Transport } from "../redis/transport.ts";
import type { Expecting, GrantInbox } from "./grant-inbox.ts";
import type { LockKind } from "./lock-kind.ts";
import type { WaitersOwner } from "./waiters.ts";

/**
 * What the lock queues of a client share. `LockManager` has it; it stands here, because imports go one way: a lock queue must
 * not know the manager.
 */
export interface Services extends WaitersOwner {
  readonly commands: Transport;
  readonly inbox: GrantInbox;
  readonly watchdog: Watchdog;
  readonly events: Events;
  /** The grant window in ms. */
  readonly window: number;
  /** A hold that no command has named before (R1), and whose messages are expected from now on. */
  newHold(kind: LockKind, name: string, expecting: Expecting): Hold;
  /** The hold is over, and whatever it is in Redis must go. */
  leave(kind: LockKind, hold: Hold): void;
  /** So many releases more, or fewer, are under way, whose answers `close()` must see: its caller may end the connection right after. */
  releasing(change: number): void;
  /** One more channel is heard, or must be done without: all lock queues begin in the order in which they came. */
  subscribed(): void;
}
