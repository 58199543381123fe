import type { Events } from "../api/events.ts";
import type { Subscriptions, Transport } from "../redis/transport.ts";
import type { Timers } from "../util/timers.ts";
import type { Cleanup } from "./cleanup.ts";
import type { Grant, Hold } from "./lease/hold.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Watchdog } from "./lease/watchdog.ts";
import type { AttemptOptions, LockKind, Withdrawer } from "./lock-kind.ts";
import type { Stays } from "./stays.ts";
import type { Waiter } from "./waiter.ts";

/**
 * All effects of the core, besides the commands of a `LockKind` and the clocks of `util/clock.ts`. A
 * client provides it, and what it reports comes back by the methods of `Expecting` and `Resource`.
 */
export interface Port {
  readonly commands: Transport;
  readonly inbox: Inbox;
  readonly events: Events;
  /** Times of callers and commands: they ring after input that came while the process was paused. */
  readonly timers: Timers;
  readonly watchdog: Watchdog;
  readonly cleanup: Cleanup;
  /** Leases whose holders want to know when another caller waits. */
  readonly wanted: {
    readonly leases: { readonly size: number };
    signalOf(lease: SharedLease): AbortSignal;
    recalled(hold: Hold): void;
    ended(hold: Hold): void;
  };
  /** Locks that stay with this process. */
  readonly stays: Stays;
  /** Warns of callers that wait for their own process. */
  readonly selfWait: {
    look(callers: Callers, first: Waiter): void;
    warn(name: string, caller: Waiter, heldBy: "this client"): void;
  };
  /** Nonces of questions to holders that may be idle; `noReplyNonce`: no answer is wanted. */
  readonly holderQueries: {
    nonce(): string;
    readonly noReplyNonce: string;
    /** Asks those that may be idle whether they are in use, for at most `wait` ms. */
    askHolders(kind: LockKind, name: string, wait: number): Promise<"free" | "idle" | "busy" | "silent">;
  };
  /** The grant window in ms. */
  readonly window: number;
  /** How many callers of this client wait. They keep the process alive. */
  waiting: number;
  /** Is it already scheduled to look whether callers still wait? */
  readonly isSweeping: boolean;
  sweepSoon(): void;
  /** A hold that no command has named before (R1); its messages are expected from now on. */
  newHold(kind: LockKind, name: string, expecting: Expecting, label?: string): Hold;
  /** Anything left of the hold in Redis must go (R3). */
  leave(kind: Withdrawer, hold: Hold): void;
  /** Is a command about this hold under way? */
  isNamed(id: string): boolean;
  /** A channel is subscribed to, or is unavailable: all locks start in the order in which they came. */
  subscribed(): void;
  /** No caller and no hold is left at this lock. */
  left(lock: { readonly kind: LockKind; readonly name: string }): void;
  tellWait(name: string, caller: Waiter): void;
  /**
   * `error`: what the caller rejects with; null: another client held the lock; SERVED: it resolves
   * with a result.
   */
  gaveUp(name: string, caller: Waiter, error: unknown): void;
}

/** Where a client receives the messages of its holds. */
export interface Inbox {
  readonly subscriptions: Subscriptions;
  /** Receives the answer to a question of this client, by its nonce. */
  readonly asked: Map<string, (is: "busy" | "idle") => void>;
  channelOf(name: string): string;
  hears(name: string): boolean;
  /** The channel's present state, for one command. */
  look(channel: string): NonNullable<AttemptOptions["channel"]>;
  /** Has subscribing to this channel failed, for now? */
  isUnheard(channel: string): boolean;
  /** Resolves when the channel is acknowledged. */
  ready(channel: string): Promise<void>;
  /** Subscribes while the client's first command is under way. */
  prepare(channel: string): void;
  /** From now on this receives the hold's messages. */
  expect(hold: Hold, expecting: Expecting): void;
  forget(hold: Hold): void;
  isExpected(hold: Hold): boolean;
}

/** Receives the messages about its hold. */
export interface Expecting {
  readonly hold: { readonly id: string } | null;
  granted(grant: Grant): void;
  /** What it waits for is there. Left out: its kind has no such message. */
  ready?(): void;
  /** `by`: the label of the caller that force-released it; null: unknown. */
  revoked(by: string | null): void;
  /** Another process wants the lock. See the message `recall`. */
  recalled(nonce: string | null, isQuestion: boolean): void;
}

/** The callers of one client at one lock. */
export interface Callers extends Iterable<Waiter> {
  readonly kind: LockKind;
  readonly name: string;
}
