// The states of the two halves of a turn, and how each may follow another. What they mean stands in the class comments.
import type { Hold } from "../lease/hold.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Waiter } from "./waiter.ts";

/** From wanting a lock to owning it: `Acquisition`. */
export type AcquisitionState = { readonly at: "off" | "subscribing" | "retrying" } | Asking | Parked;

export interface Asking {
  readonly at: "asking";
  readonly hold: Hold;
  readonly isQueueing: boolean;
}

interface Parked {
  readonly at: "parked";
  readonly hold: Hold | null;
  /** Our own release has just been sent, whose message wakes everybody. */
  readonly isFreed: boolean;
  isChecking: boolean;
  position: number | null;
}

/** From owning a lock to letting it go: `LockQueue`. */
export type QueueState =
  | { readonly at: "idle" | "searching" }
  | { readonly at: "claiming"; readonly hold: Hold; readonly waiter: Waiter }
  | { readonly at: "yielding"; readonly hold: Hold }
  | { readonly at: "holding"; readonly hold: Hold; readonly tenure: SharedLease };

type Moves<At extends string> = Readonly<Record<At, readonly At[]>>;

export const ACQUISITION_MOVES: Moves<AcquisitionState["at"]> = {
  off: ["asking", "subscribing", "parked", "retrying"],
  asking: ["off", "asking", "subscribing", "parked", "retrying"],
  subscribing: ["off", "asking", "retrying"],
  parked: ["off", "asking"],
  retrying: ["off", "asking"],
};

export const QUEUE_MOVES: Moves<QueueState["at"]> = {
  idle: ["searching"],
  searching: ["idle", "searching", "claiming", "holding"],
  claiming: ["searching", "claiming", "holding"],
  holding: ["searching", "claiming", "holding", "yielding"],
  yielding: ["searching", "claiming", "holding"],
};

/** @throws Error for a move that is not in the table: a bug, which must not go on unseen. */
export function assertMove<At extends string>(moves: Moves<At>, from: At, to: At): void {
  if (!moves[from].includes(to)) throw new Error(`a turn at a lock: illegal move from ${from} to ${to}`);
}
