// What the server of the page tells it, as JSON, by the names of the table in src/api/party.ts.
// Times are ms up to the moment when it was seen, so that no clock of a viewer counts: there is no
// `since`.
// It imports nothing: a browser has no types of Node.js.

/** As `locks.list()` has it. */
type ShownKind = "lock" | "readWrite" | "semaphore" | "election" | "redisson";

/** A holder or a waiter. */
export interface ShownParty {
  readonly id: string;
  readonly label: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly units: number;
  readonly mode: "read" | "write" | null;
}

export interface ShownHolder extends ShownParty {
  readonly heldFor: number | null;
  readonly token: number | null;
  /** Null: no end is set, for which JSON has no number. */
  readonly remaining: number | null;
  readonly lease: number | null;
}

export interface ShownWaiter extends ShownParty {
  readonly waitedFor: number | null;
}

/** A lock in a list. */
export interface ShownLock {
  readonly kind: ShownKind;
  readonly name: string;
  /** The one that has held longest; null: it is free, and waited for. */
  readonly holder: ShownHolder | null;
  readonly holderCount: number;
  readonly waitingProcesses: number;
  readonly longest: number | null;
  readonly kept: boolean;
  readonly permits: number | null;
  /** The last time that a holder has lost it, as far as observed processes have told; null: none has. */
  readonly lost: Happened | null;
}

/** What every view has. */
interface Seen {
  /** ms that have passed since Redis answered what is shown; null: it has answered nothing yet. */
  readonly age: number | null;
  /** ms of age at which there should be something newer. */
  readonly due: number;
  readonly total: number;
  readonly waitedLocks: number;
  /** Redis is being looked through for the first time: there will be more. */
  readonly isPartial: boolean;
  /** Circles of callers, of which none can go on. Null: not known. */
  readonly deadlocks: number | null;
  /** Why not all notes of callers were read, in a sentence; null: they were. */
  readonly unread: string | null;
  /** What is missing of what observed processes tell, in sentences; null: nothing is. */
  readonly untold: string | null;
  /** Why Redis says nothing newer; null: it does. */
  readonly trouble: string | null;
  /** What viewers may do. */
  readonly actions: readonly Action[];
}

export type Action = "recall" | "break";

export interface ShownNow extends Seen {
  readonly view: "now";
  /** How many locks fit the search. */
  readonly fitting: number;
  /** There are so many that the search has looked through the names alone. */
  readonly isByName: boolean;
  /** At most 500 of them, those first for which somebody has waited longest. */
  readonly locks: readonly ShownLock[];
}

export interface ShownOne extends Seen {
  readonly view: "lock";
  /** Null: it is free, and no process waits. */
  readonly lock: ShownLock | null;
  readonly holders: readonly ShownHolder[];
  /** In order: of a process one, or each of its callers where the lock is fair. */
  readonly waiters: readonly ShownWaiter[];
  /** What was told of it by observed processes, the latest first; null: nothing is observed. */
  readonly history: readonly Happened[] | null;
}

/** A client in the view of blocked ones, as one of its calls is shown. */
export interface ShownClient extends ShownWaiter {
  /** How many of its calls wait there. */
  readonly calls: number;
  /**
   * It stands further up in this branch as well: all of these processes wait for each other.
   * "deadlock": these callers, and for ever; "possible": these callers, but others may help;
   * "sign": clients may have many callers, and which ones these are nobody has said.
   */
  readonly circle: "deadlock" | "possible" | "sign" | null;
  /** What it holds is shown elsewhere. */
  readonly isElsewhere: boolean;
  readonly blocks: readonly ShownBlock[];
}

/** A lock that a client holds, and those that wait for it. */
export interface ShownBlock {
  readonly kind: ShownKind;
  readonly name: string;
  readonly heldFor: number | null;
  readonly waiters: readonly ShownClient[];
}

type ShownName = Pick<ShownLock, "kind" | "name">;

/** Callers of which each waits for what the next one holds: they have said so, and Redis shows it. */
export interface ShownCircle {
  /** Nobody else can break it. False: others may give back permits, or a writer between readers may leave. */
  readonly isSure: boolean;
  /** The client of one of them ends its wait. */
  readonly rejected: boolean;
  /** Each holder waits for the next lock, and the last one for the first. */
  readonly cycle: readonly (ShownName & {
    readonly holder: ShownHolder;
    readonly waitsFor: ShownName;
    readonly waitedFor: number | null;
  })[];
}

export interface ShownBlocked extends Seen {
  readonly view: "blocked";
  /** Null: not known. */
  readonly circles: readonly ShownCircle[] | null;
  readonly clients: readonly ShownClient[];
  /** There are more. */
  readonly isCut: boolean;
}

/** Something that an observed process has told of a lock. */
export interface Happened {
  readonly what: "acquire" | "giveup" | "lost";
  /** ms ago. */
  readonly ago: number;
  /** Null: it lost the lock. */
  readonly waitedFor: number | null;
  /** Null: it lost none. */
  readonly heldFor: number | null;
  readonly why: string | null;
  readonly client: string;
}

/** The last 15 minutes of a lock, in 60 steps of 15 s, the latest last. */
export interface ShownHeat {
  readonly name: string;
  /** How many calls had waited when they came to an end. */
  readonly waits: readonly number[];
  /** How long 95 of 100 of them had waited at the most, in ms; null: none had. */
  readonly p95: readonly (number | null)[];
  readonly losses: number;
}

export interface ShownHeats extends Seen {
  readonly view: "heat";
  /**
   * The most waited for first; at most 100. Null: nothing is observed, because the page was made
   * without `redis`.
   */
  readonly heats: readonly ShownHeat[] | null;
  /** How many processes have told something in this time. */
  readonly processes: number;
}

export type Shown = ShownNow | ShownOne | ShownBlocked | ShownHeats;

/** Of an action. */
export interface Done {
  /** What became of it, in a sentence. */
  readonly said: string;
  readonly done: boolean;
}
