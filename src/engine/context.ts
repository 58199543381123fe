import type { Events } from "../api/events.ts";
import type { Transport } from "../redis/transport.ts";
import type { Timers } from "../util/timers.ts";
import type { Cleanup } from "./cleanup.ts";
import type { Expecting, GrantInbox } from "./grant-inbox.ts";
import type { IdleTenures } from "./idle-tenures.ts";
import type { Hold } from "./lease/hold.ts";
import type { Watchdog } from "./lease/watchdog.ts";
import type { LingerLearner } from "./linger-learner.ts";
import type { LockKind, Withdrawer } from "./lock-kind.ts";
import type { SelfWait } from "./self-wait.ts";
import type { Waiter } from "./waiter.ts";
import type { WantedSignals } from "./wanted-signals.ts";

/**
 * What the local locks of a client share. `LockManager` implements it. It is declared here because
 * imports go one way: a local lock must not know the manager.
 */
export interface Context {
  readonly commands: Transport;
  readonly inbox: GrantInbox;
  readonly watchdog: Watchdog;
  readonly events: Events;
  readonly timers: Timers;
  readonly selfWait: SelfWait;
  readonly cleanup: Cleanup;
  /** The unlocked locks that this client keeps. */
  readonly linger: LingerLearner;
  readonly idle: IdleTenures;
  /**
   * Asks the holders of locks. A nonce identifies each question; `noReplyNonce`: no answer is
   * wanted.
   */
  readonly holderQueries: {
    nonce(): string;
    readonly noReplyNonce: string;
    askHolders(kind: LockKind, name: string, wait: number): Promise<"free" | "idle" | "busy" | "silent">;
  };
  /** Leases whose holders want to know when another caller waits. */
  readonly wanted: WantedSignals;
  /** The grant window in ms. */
  readonly window: number;
  /** Objects with callers whose first command is unanswered. */
  readonly asking: Set<{ sweep(at: number): void }>;
  /** How many callers of this client wait for a lock, or for a first answer. They keep the process alive. */
  waiting: number;
  /** Is a sweep for unanswered callers scheduled? */
  readonly isSweeping: boolean;
  sweepSoon(): void;
  /**
   * A new hold, which no command has named before (R1), and whose messages are expected from now
   * on.
   */
  newHold(kind: LockKind, name: string, expecting: Expecting, label?: string): Hold;
  /** The hold is over; anything left of it in Redis must go. */
  leave(kind: Withdrawer, hold: Hold): void;
  /** Is a command about this hold under way? */
  isNamed(id: string): boolean;
  /**
   * One more channel is subscribed to, or is unavailable: all local locks start in the order in
   * which they came.
   */
  subscribed(): void;
  /**
   * This client's callers at a lock, by this kind. `isWanted`: create the local lock if there is
   * none.
   */
  localLockOf(kind: LockKind, name: string, isWanted?: boolean): Iterable<Waiter> | undefined;
  /** No caller is left in this local lock. */
  left(queue: { readonly kind: LockKind; readonly name: string }): void;
  /** A caller has to wait. */
  tellWait(name: string, waiter: Waiter): void;
  /** A caller ended without the lock. `error`: what it rejects with; null: another client held it. */
  gaveUp(name: string, waiter: Waiter, error: unknown): void;
}
