import type { QuorumClientOptions } from "../../../src/quorum/index.ts";
import type { Dice } from "../dice.ts";
import type { Fault } from "../faults/fault.ts";
import type { LockKind, Told } from "../history/events.ts";
import type { Wires } from "./wires.ts";

export type TopologyName = "standalone" | "sentinel" | "cluster" | "quorum";

/** A Redis in one of its shapes, with wires that can be cut, and what can go wrong with its servers. */
export interface Arena {
  readonly wires: Wires;
  readonly faults: readonly Fault[];
  /** So many of its faults may be there at the same time; 1 when left out. */
  readonly faultsAtOnce?: number;
  /** How a worker's lock client works, where one of this arena has options of its own. */
  client?(dice: Dice): QuorumClientOptions;
  /** Tells of failovers, also of those that nobody ordered; returns how to end it. */
  watch?(tell: (told: Told) => void): () => void;
  stop(): Promise<void>;
}

export interface ArenaOptions {
  readonly workers: number;
  /**
   * Give the servers clocks that can be turned, where there is a way to do so, and that run at
   * these rates. Null: the machine's.
   */
  readonly rate: (() => number) | null;
  /** How many masters a quorum has. */
  readonly masters: number;
}

/** The locks that are fought for. Few, so that they are busy; of different slots in a Cluster. */
export const LOCKS = ["hot", "orders", "stock", "mail"] as const;

/** And one that is mostly one worker's: it can keep that for long, until another one comes by. */
export const ownLock = (worker: number): string => `own ${worker}`;

/** Beside them, locks without tokens and without a queue, by name. */
export const PLAIN_LOCKS: Readonly<Record<string, LockKind>> = { java: "redissonLock", spun: "spinLock" };

/** And what several share, or one of many does. */
export const SHARED = ["shared", "slots", "throne", "tick", "slot", "memo", "flight"] as const;

/** Permits of the semaphore. */
export const PERMITS = 3;

/** Before every key, in every topology: channels have to carry it too. */
export const KEY_PREFIX = "chaos:";

/** A key of a lock as Redis sees it. */
export const keyOf = (lock: string): string => `${KEY_PREFIX}holdfast:{${lock}}`;
