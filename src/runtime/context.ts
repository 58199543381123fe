import type { Watchdog } from "../core/lease/watchdog.ts";
import type { Port } from "../core/port.ts";
import type { Cleanup } from "./cleanup.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { SelfWait } from "./self-wait.ts";
import type { WantedSignals } from "./wanted-signals.ts";

/**
 * What the parts of a client share. `LockManager` implements it. It is declared here because
 * imports go one way: a part must not know the manager.
 */
export interface Context extends Port {
  readonly inbox: GrantInbox;
  readonly watchdog: Watchdog;
  readonly selfWait: SelfWait;
  readonly cleanup: Cleanup;
  readonly wanted: WantedSignals;
}
