// What the coordinator and a worker process, in Node or Java, say to each other: one JSON object a
// line over the worker's stdin and stdout. Whatever else a library prints belongs on stderr.

/**
 * What a worker is to do. Sent once, as its first line; answered with `ready` when its connections
 * are open.
 */
export interface Job {
  /** Its id in the registry. */
  readonly contender: string;
  readonly url: string;
  /** This worker's number, 0 for the first, and how many there are. */
  readonly worker: number;
  readonly workers: number;
  readonly seed: number;
  /** The file URL of another commit's Holdfast; null: the present one. */
  readonly library: string | null;
}

/** Callers in a closed loop: each acquires, holds, releases, thinks, and begins again. */
export interface Load {
  readonly is: "load";
  /** Callers in each process. */
  readonly tasks: number;
  /** Each acquisition takes one of them at random. */
  readonly names: readonly string[];
  /**
   * The part of the acquisitions, at random, that take one of the process's own names: each process
   * has as many of them as the others. The rest takes any.
   */
  readonly own: number;
  /** null: callers do not care for those of other processes. */
  readonly turns: Turns | null;
  /** ms to hold; 0: released in the same turn of the event loop. */
  readonly hold: number;
  /** ms between a release and the next attempt: at random from 0 to this; 0: at once. */
  readonly think: number;
  /** Each acquisition asks for one of these leases at random, in ms; null = as long as the work takes. */
  readonly leases: readonly (number | null)[];
  /** ms that a caller is willing to wait. */
  readonly wait: number;
  /**
   * One more caller, in the first process, that wants to be alone, and pauses for up to so many ms,
   * at random, before it asks again. Its acquisitions alone are measured. null: there is none.
   */
  readonly writer: number | null;
  /** Acquisitions of each caller; null: until the time is up. */
  readonly times: number | null;
}

/**
 * Callers in each process for which numbers are reserved; the writer's is the last one of the first
 * process.
 */
export const callersEach = ({ tasks, writer }: Load): number => tasks + (writer === null ? 0 : 1);

/**
 * Processes that come one after the other, by the clock that they share. All take the same name,
 * and in each round the next one.
 */
export interface Turns {
  /** ms of a round, in which each process has one turn. */
  readonly every: number;
  /** How often the first process takes the lock in its turn. All others take it once. */
  readonly first: number;
  /** Are only the acquisitions of the last process measured? */
  readonly isLastMeasured: boolean;
}

/** Many callers of one process that do nothing for a while. What that costs is measured. */
export interface Still {
  /**
   * held: each holds a lock of its own · parked: all wait for one lock that another client of the
   * process holds.
   */
  readonly is: "held" | "parked";
  readonly callers: number;
  /** ms to watch them. */
  readonly watch: number;
}

/**
 * "start": the callers begin. Comes again after its answer: a process runs cold, warms up, and is
 * measured. "leave": close and exit.
 */
export type Word = Start | { readonly do: "leave" };

export interface Start {
  readonly do: "start";
  readonly load: Load | Still;
  /**
   * The callers begin at `from`, the same moment for all processes, and stop asking at `until`. In
   * µs of the system's monotonic clock, which process.hrtime and System.nanoTime read on Linux.
   */
  readonly from: number;
  readonly until: number;
  /**
   * From now on V8 compiles early: what takes minutes in a service must not take minutes here. Has
   * no meaning to a JVM.
   */
  readonly compileEarly: boolean;
}

/** Numbers of acquisitions at which a process notes what CPU time it has used. */
export const MILESTONES = [1_000, 2_000] as const;

export type Report =
  | { readonly is: "ready" }
  /** A few times a second while callers run. */
  | { readonly is: "progress"; readonly acquired: number }
  | Done
  | Stood
  | { readonly is: "failed"; readonly why: string };

/** The end of a Load. */
export interface Done {
  readonly is: "done";
  /**
   * Base64 of little-endian doubles, five for each acquisition: the caller's number in this
   * process; which name; and in µs of the system's monotonic clock: asked, acquired, release
   * called.
   */
  readonly samples: string;
  /**
   * How many there were, where samples were dropped because there were too many. Left out: as many
   * as there are samples.
   */
  readonly acquired?: number;
  /**
   * Commands written to Redis from "start" on, on all connections, a script counts once; null: not
   * counted here.
   */
  readonly commands: number | null;
  /** Writes to sockets, that is calls of write(2), from "start" on; null: not counted here. */
  readonly writes: number | null;
  /** CPU time of this process from "start" on, in µs. */
  readonly cpu: number;
  /**
   * The same when it had reached each of the MILESTONES; shorter when it has not reached them all.
   * Left out: not noted.
   */
  readonly cpuAt?: readonly number[];
  readonly timeouts: number;
  /** How many acquisitions or releases rejected, and the first few messages, each once. */
  readonly errors: number;
  readonly messages: readonly string[];
}

/** The end of a Still. */
export interface Stood {
  readonly is: "stood";
  /**
   * ms that they were watched, and what that cost: commands sent, CPU time of this process and of
   * the server in µs.
   */
  readonly watched: number;
  readonly commands: number | null;
  readonly cpu: number;
  readonly redisCpu: number;
  /** Heap bytes and Node timers for each caller. */
  readonly bytesEach: number;
  readonly timers: number;
  /**
   * Held: how many were not held any more at the end. Parked: how many calls ended although nothing
   * was released.
   */
  readonly lost: number;
  readonly messages: readonly string[];
}
