import type { Port } from "../core/port.ts";
import type { Cleanup } from "./cleanup.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { Watchdog } from "./lease/watchdog.ts";
import type { SelfWait } from "./self-wait.ts";
import type { WantedSignals } from "./wanted-signals.ts";

/**
 * What the local locks of a client share. `LockManager` implements it. It is declared here because
 * imports go one way: a local lock must not know the manager.
 */
export interface Context extends Port {
  readonly inbox: GrantInbox;
  readonly watchdog: Watchdog;
  readonly selfWait: SelfWait;
  readonly cleanup: Cleanup;
  readonly wanted: WantedSignals;
  /** Objects with callers whose first command is unanswered. */
  readonly asking: Set<{ sweep(at: number): void }>;
}
