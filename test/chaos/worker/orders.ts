import type { LockClientOptions } from "../../../src/index.ts";
import type { QuorumClientOptions } from "../../../src/quorum/index.ts";
import type { Address } from "../../support/servers/connection.ts";
import type { LockKind } from "../history/events.ts";
import type { Driver } from "../settings.ts";
import type { Plant } from "./plants.ts";
import type { Particular, SharedName } from "./shared-wish.ts";
import type { Usage } from "./usage.ts";

/** What workers want. */
export interface Taste {
  /** The part of all wishes, from 0 to 1, that is for what several share, or one of many does. */
  readonly shared: number;
  /** Of that only these; all when left out. */
  readonly names?: readonly SharedName[];
  /** How they are had, in place of what the dice would say. */
  readonly kinds?: readonly LockKind[];
  readonly particular?: Particular;
  /** These are waited for without end, and held for seconds. */
  readonly isPatient?: boolean;
}

/** What a worker is started with. */
export interface WorkerOptions {
  /** Its name and life: "2.1". */
  readonly by: string;
  /** Where its history goes. */
  readonly folder: string;
  readonly seed: number;
  /** How many callers ask for locks at the same time. */
  readonly callers: number;
  readonly locks: readonly string[];
  /** The locks that are mostly one worker's, this worker's first. */
  readonly owns: readonly string[];
  readonly taste: Taste;
  /** With masters beside the first one: of a quorum. */
  readonly address: Address;
  readonly connect: { readonly driver: Driver; readonly keyPrefix: string };
  readonly client: LockClientOptions | QuorumClientOptions;
  readonly plant: Plant | null;
}

/** What a worker is told. */
export type Order =
  | { readonly do: "start"; readonly options: WorkerOptions }
  /** Keeps the event loop busy. */
  | { readonly do: "block"; readonly ms: number }
  /** Breaks a connection as a network would; the library makes another. */
  | { readonly do: "reconnect" }
  /** No more calls; ends when those that are under way have ended. */
  | { readonly do: "drain" }
  /** Begins no call until it is told to go on; when all have ended, it reports what it has. */
  | { readonly do: "rest" }
  | { readonly do: "go on" }
  /** Ends at once by itself, with whatever it holds and keeps. */
  | { readonly do: "exit" }
  /** Closes the lock client in the middle of everything, and ends. */
  | { readonly do: "close"; readonly grace: number };

/** What a worker reports: that it works, how far it has come, and what it has when it rests. */
export type Report =
  | { readonly is: "ready" }
  | { readonly is: "progress"; readonly grants: number }
  | { readonly is: "rested"; readonly usage: Usage };
