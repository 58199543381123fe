// The JSON that the server sends to the page, by the names of the table in src/api/party.ts. Times
// are ms up to the look at Redis, and there is no `since`: a viewer's clock may be wrong.
// This file imports nothing: a browser has no types of Node.js.

/** ms from which the line on top reports a wait. */
export const LONG_WAIT = 10_000;

/** As `locks.list()` has it. */
type ShownKind = "lock" | "readWrite" | "semaphore" | "election" | "remember" | "redisson";

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
  /** Null: no end is set; JSON has no Infinity. */
  readonly remaining: number | null;
  /** How long its lease is, in ms. Null: it is not known. */
  readonly lease: number | null;
  /** ms since its lease was renewed: its process was alive then. Null: it is not known. */
  readonly renewed: number | null;
  /** ms since its lease was renewed, if that is overdue. Null: it is not, or that is not certain. */
  readonly unrenewed: number | null;
  /** The line of the application that called, as an observed process reported it. Null: not known. */
  readonly site: string | null;
}

export interface ShownWaiter extends ShownParty {
  readonly waitedFor: number | null;
}

/** A lock in a list. */
export interface ShownLock {
  readonly kind: ShownKind;
  readonly name: string;
  /** The longest holder; null: it is free, and has waiters. */
  readonly holder: ShownHolder | null;
  readonly holderCount: number;
  readonly waitingProcesses: number;
  /**
   * ms of the longest wait; of an election without a leader, since it was first seen so. Null: no
   * process waits, or candidates stand by for a leader that is well.
   */
  readonly longest: number | null;
  readonly kept: boolean;
  readonly permits: number | null;
  /** The last time that an observed process lost it; null: none has. */
  readonly lost: Reported | null;
}

/** The fields of every view. */
interface Seen {
  /** ms since Redis answered with what is shown; null: it has not answered yet. */
  readonly age: number | null;
  /** ms of age at which there should be something newer. */
  readonly due: number;
  readonly total: number;
  /** How many of them are held, waited for, and waited for since `LONG_WAIT` or longer. */
  readonly heldLocks: number;
  readonly waitedLocks: number;
  readonly longLocks: number;
  /** ms since the last look at all locks, from which the next fields come; null: none has ended. */
  readonly allAge: number | null;
  /** The lock with the longest wait, outside of `deadlocked`; null: no process waits. */
  readonly worst: ShownLock | null;
  /** How many locks outside of `deadlocked` have a wait of `LONG_WAIT` or longer. */
  readonly longWaits: number;
  /** The lock whose holder is far older than usual, outside of these; null: there is none. */
  readonly oldest: ShownLock | null;
  /** How many locks have such a holder. */
  readonly oldHolds: number;
  /** Half of the locks have been held for less, in ms; null: `oldest` is. */
  readonly usual: number | null;
  /** Null: none was seen in the last 15 minutes. */
  readonly restart: ShownRestart | null;
  /**
   * Percent of Redis's `maxmemory` in use: at 100 it refuses new locks. Null: not known, no limit, or
   * keys are evicted.
   */
  readonly memory: number | null;
  /** Null: the page has no connection for that, or Redis is a Cluster. */
  readonly server: ShownServer | null;
  /** The first look has not ended: there will be more. */
  readonly isPartial: boolean;
  /** How many proven deadlocks there are. Null: not known. */
  readonly deadlocks: number | null;
  /** The locks of each; with many deadlocks, of the first ones. */
  readonly deadlocked: readonly (readonly ShownName[])[];
  /** A search has read only names. */
  readonly isByName: boolean;
  /** Why deadlocks may be missing, in a sentence; null: none are. */
  readonly unread: string | null;
  /** The observed processes where no messages arrive: their callers get locks late. */
  readonly deaf: readonly ShownDeaf[];
  /** Which reports of observed processes are missing, in sentences; null: none are. */
  readonly untold: string | null;
  /** Why there is nothing newer from Redis; null: there is. */
  readonly trouble: string | null;
  /** What viewers may do. */
  readonly actions: readonly Action[];
  /** Null: this page is no demo. */
  readonly demo: ShownDemo | null;
}

/** An observed process where no messages arrive. */
export interface ShownDeaf {
  /** The id of its client, its label, and where it runs. */
  readonly client: string;
  readonly label: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  /** The message of its `error` event. */
  readonly why: string;
  /** ms ago; it is said again each minute. */
  readonly ago: number;
}

/** What the locks may be filtered by. */
export type Only = "held" | "waited" | "long";

/** Redis, as it answered last. */
export interface ShownServer {
  /** ms from a command to its answer, or up to now if there is none yet. */
  readonly roundTrip: number;
  /** Bytes; null: it has not said. */
  readonly usedMemory: number | null;
  /** `maxmemory` in bytes; null: no limit is set, or it has not said. */
  readonly maxMemory: number | null;
}

/** Redis restarted, or another server took its place. */
export interface ShownRestart {
  /** The run id changed. False: Redis did not answer, and then had none of the locks from before. */
  readonly isCertain: boolean;
  /** How many locks were held before, and how many of these have lost their holders. */
  readonly held: number;
  readonly gone: number;
  /** ms ago. */
  readonly ago: number;
}

export type Action = "recall" | "break";

export interface ShownNow extends Seen {
  readonly view: "now";
  /** How many locks match the search and the filter. */
  readonly fitting: number;
  /** Not all locks are sorted, only those with the longest waits, then the longest holds. */
  readonly isCut: boolean;
  /** At most 500, sorted as the viewer wants; by default the longest wait first. */
  readonly locks: readonly ShownLock[];
}

export interface ShownOne extends Seen {
  readonly view: "lock";
  /** Null: it is free, and no process waits. */
  readonly lock: ShownLock | null;
  readonly holders: readonly ShownHolder[];
  /** What the leader publishes. Null: nothing, it is no election, or it is not known yet. */
  readonly value: string | null;
  /** In their order: one for each process, or one for each caller where the lock is fair. */
  readonly waiters: readonly ShownWaiter[];
  /**
   * The calls that observed processes reported, the latest first, without those of the holders; null:
   * the page has no connection for that.
   */
  readonly reported: readonly Reported[] | null;
  /** How many processes have reported something in this time. */
  readonly processes: number;
}

/** A client in the view "blocked", shown by one of its calls. */
export interface ShownClient extends ShownWaiter {
  /** How many of its calls wait there. */
  readonly calls: number;
  /**
   * The client is also further up in this branch, so these processes wait for each other.
   * "deadlock": a proven deadlock of their callers; "possible": the same, but other callers may end
   * it; "sign": not proven, because a client may have many callers.
   */
  readonly circle: "deadlock" | "possible" | "sign" | null;
  /** Its locks are shown elsewhere. */
  readonly isElsewhere: boolean;
  readonly blocks: readonly ShownBlock[];
}

/** A lock that a client holds, and the clients that wait for it. */
export interface ShownBlock {
  readonly kind: ShownKind;
  readonly name: string;
  readonly heldFor: number | null;
  readonly waiters: readonly ShownClient[];
}

type ShownName = Pick<ShownLock, "kind" | "name">;

/** A deadlock, proven by the notes of its callers and by Redis. */
export interface ShownCircle {
  /** No other caller can end it. False: others may return permits, or a writer between readers may leave. */
  readonly isSure: boolean;
  /** The client of one of its callers will end that caller's wait. */
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

/** A call for a lock, as an observed process reported it. */
export interface Reported {
  /** The client's number for it. */
  readonly call: number;
  /** "holds": its end has not been reported. "giveup": it ended without the lock. "lost": it noticed that. */
  readonly how: "holds" | "released" | "lost" | "giveup";
  /** ms since it ended, or since "holds" was reported. */
  readonly ago: number;
  readonly waitedFor: number;
  /** Null: it never had the lock. */
  readonly heldFor: number | null;
  /** Why it was lost, or not acquired; null: it was neither. */
  readonly why: string | null;
  /** The line of the application that called. Null: not known. */
  readonly site: string | null;
  /** The id of the client, its label, and where it runs. */
  readonly client: string;
  readonly label: string | null;
  readonly host: string | null;
  readonly pid: number | null;
}

/** The last 15 minutes of a lock, in 60 steps of 15 s, the latest step last. */
export interface ShownWaits {
  /** Of the lock that is waited for now; "lock" where it is not known. */
  readonly kind: ShownKind;
  readonly name: string;
  /** How many processes wait now, and for how long the first of them has; null: none waits. */
  readonly waitingProcesses: number;
  readonly longest: number | null;
  /** How many calls that had waited ended in each step. */
  readonly waits: readonly number[];
  /** The 95th percentile of their waits, in ms; null: there were none. */
  readonly p95: readonly (number | null)[];
  readonly losses: number;
}

export interface ShownWaitTimes extends Seen {
  readonly view: "wait-times";
  /**
   * First the locks with a wait of `LONG_WAIT` or longer in progress, then those with the most waits
   * and losses; at most 100.
   */
  readonly waitTimes: readonly ShownWaits[];
  /**
   * How many processes have reported something in this time. Null: the page was created without
   * `redis`.
   */
  readonly processes: number | null;
}

export type Shown = ShownNow | ShownOne | ShownBlocked | ShownWaitTimes;

/** The outcome of an action. */
export interface Done {
  /** The outcome, in a sentence. */
  readonly said: string;
  readonly done: boolean;
}

/** The fleet of the demo, and how its knobs are turned. */
export interface ShownDemo {
  readonly fleet: readonly ShownProcess[];
  /** ms by which each answer of Redis is late. */
  readonly lateBy: number;
  readonly isDeadlocked: boolean;
}

export interface ShownProcess {
  readonly name: string;
  /** Its host and number. */
  readonly where: string;
  readonly work: string;
  readonly isDead: boolean;
  readonly isPaused: boolean;
  readonly isCut: boolean;
  readonly isHung: boolean;
  /** The knob that is turned when it holds its lock next; null: none. */
  readonly next: "crash" | "pause" | "cut" | null;
}

/** A knob of one process, and the one that turns it back. */
export type ProcessKnob = "crash" | "start" | "pause" | "resume" | "cut" | "mend" | "hang" | "let go";

export type Knob =
  | { readonly knob: ProcessKnob; readonly process: string }
  | { readonly knob: "latency"; readonly ms: number }
  | { readonly knob: "deadlock" | "end deadlock" };

export const LATENCIES: readonly number[] = [0, 50, 500, 3_000];
