import type { LockStats } from "../../../src/index.ts";

/**
 * How a lock is had. `multiLock`: one of several that are taken together; each of them is a call of
 * its own here. `quorumLock`: the `lock` of several masters. `permit`: some permits of a semaphore.
 * `once`: a run in its interval. `remember`: a run whose result other callers get.
 */
export type LockKind =
  | "lock"
  | "fairLock"
  | "multiLock"
  | "redissonLock"
  | "spinLock"
  | "quorumLock"
  | "readLock"
  | "writeLock"
  | "permit"
  | "election"
  | "once"
  | "remember";

/** What one caller in one worker tells; `call` is the number of its call in that worker. */
export type CallEvent =
  | {
      is: "ask";
      call: number;
      lock: string;
      kind: LockKind;
      /** ms that it is willing to wait; null: for ever. */
      wait: number | null;
      /** The rest of how it was asked, for people. */
      how: string;
      /** ms; left out: as its client has it. */
      lease?: number | undefined;
      /** Of a semaphore: how many permits it wants. */
      units?: number | undefined;
      /** Of a run: ms of its interval, and whether these are slots of the server's clock. */
      every?: number | undefined;
      aligned?: boolean | undefined;
      /** Of `remember`: ms for which new callers get the result, what it is for; its body throws. */
      keep?: number | undefined;
      fingerprint?: string | undefined;
      throws?: boolean | undefined;
      /** Of a reader: the call of its process that wrote before, and became this reader. */
      writer?: number | undefined;
      /** Its signal is listened to: its body ends when that aborts. */
      listens?: boolean | undefined;
      /** Of a leader that campaigns again by itself: the call of its term before, 0: of its first term. */
      again?: number | undefined;
    }
  /** Its signal is aborted now, while it waits. */
  | { is: "abort"; call: number }
  /**
   * It has the lock; `left` ms until the lease's own deadline. What does not tell its deadline is
   * counted on as long as it is seen. The token of a run is its beginning by the server's clock, in
   * ms. `held`: as the lease says right after this time was read.
   */
  | { is: "lease"; call: number; token: number; left: number; held?: boolean }
  /** It did not get the lock, because somebody else has it. */
  | { is: "busy"; call: number }
  /**
   * It ran nothing, and got the result of the run with this token. `value`: the call whose body made it,
   * as "2.1#17". `stored`: when, by the server's clock, in ms.
   */
  | { is: "got"; call: number; token: number; value: string; stored: number }
  | { is: "failed"; call: number; error: string }
  /** Seen while it holds. "Held" was true after this time was read, "not held" before. */
  | {
      is: "seen";
      call: number;
      after: "a renewal" | "an extension" | "a while" | "a loss";
      held: boolean;
      left: number;
    }
  /** Its signal told it that the lease is lost. */
  | { is: "lost"; call: number; reason: string }
  /** `unlock()` is called next; `held`: as the lease says right after this time was read. */
  | { is: "unlock"; call: number; held: boolean }
  /** `stored`: when the result of its run was, as in "got"; 0: Redis has not confirmed that. */
  | { is: "unlocked"; call: number; error: string | null; stored?: number | undefined };

/** What a worker tells of itself. */
type WorkerEvent =
  /**
   * An observer of an election is shown another leader; `token` 0: none, from here on. `number`: of
   * its proclamation, from 1 in each term.
   */
  | { is: "shown"; lock: string; token: number; number: number }
  /**
   * Asks for another number of permits, and has an answer; `set` is the number of this question in
   * the worker.
   */
  | { is: "sets"; set: number; lock: string; permits: number }
  | { is: "has set"; set: number; error: string | null }
  /** Has a result forgotten, and has an answer; `forget` is the number of this call in the worker. */
  | { is: "forgets"; forget: number; lock: string }
  | { is: "has forgotten"; forget: number; error: string | null }
  | { is: "up"; settings: string }
  | { is: "blocked"; ms: number }
  | { is: "unhandled"; error: string }
  | { is: "trouble"; error: string }
  /** What became of the locks that it has kept; told when it ends. */
  | ({ is: "kept" } & LockStats)
  | { is: "done" };

/** What the director tells. `victim` is a worker's name, as in `Event.by`. */
type DirectorEvent =
  | { is: "fault"; number: number; kind: string; detail: string }
  | { is: "healed"; number: number; kind: string }
  /** From here on a worker says nothing any more. `meant`: the director has killed it. */
  | { is: "dead"; victim: string; meant: boolean; how: string }
  | { is: "stopped"; victim: string }
  | { is: "continued"; victim: string }
  /**
   * The server may have forgotten, between two moments, what it had promised before. The times are
   * server µs as in tokens.
   */
  | { is: "forgot"; since: number; from: number; to: number; what: string }
  /** The machine's wall clock was stepped by so many ms: an accident of the machine, no fault of the run. */
  | { is: "clock step"; ms: number }
  /** The faults are over; nobody asks for a lock any more. */
  | { is: "draining" }
  /** All callers had their time to finish. */
  | { is: "over" };

/**
 * `at`: µs of the system's monotonic clock, which all processes of a machine share. `by`:
 * "director", or worker and life: "2.1".
 */
export type Event = { at: number; by: string } & (CallEvent | WorkerEvent | DirectorEvent);

/** Without `at` and `by`, which the recorder adds. */
export type Told = CallEvent | WorkerEvent | DirectorEvent;

/** µs of the clock in `Event.at`. */
export function micros(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}
