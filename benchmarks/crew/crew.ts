import pTimeout from "p-timeout";
import { micros } from "../workers/clock.ts";
import type { Done, Job, Load, Report, Still } from "../workers/protocol.ts";
import { Member, type Program } from "./member.ts";

/** Thirty-two JVMs on two cores take a while. */
const START_WITHIN = 120_000;
const LEAVE_WITHIN = 5_000;
/** Beyond the time for which callers run and wait: a contender that needs more hangs. */
const SPARE = 15_000;

export interface Assignment {
  readonly program: Program;
  readonly processes: number;
  readonly job: Omit<Job, "worker" | "workers">;
  /** What the new processes do first, and what warms them up. Null: nothing. */
  readonly cold: Task<Load> | null;
  readonly warmUp: Task<Load> | null;
  readonly task: Task<Load | Still>;
  readonly signal: AbortSignal;
  readonly onProgress: (acquired: number) => void;
}

interface Task<What> {
  readonly load: What;
  /** ms for which callers begin acquisitions; what they have begun is finished afterwards. */
  readonly duration: number;
}

const PROGRESS_EVERY = 250;
/** ms from a word to the moment at which all processes begin: each has read it by then. */
const NOTICE = 50;

/**
 * Runs the worker processes of one round. Each step begins in all of them at one moment, after the
 * step before has ended in all of them. Every step ends, and so do the processes, whatever happens.
 *
 * @throws Error that says which worker hung, failed or died
 */
export async function runCrew<Kind extends "done" | "stood">(
  kind: Kind,
  assignment: Assignment,
  onStart: () => Promise<void>,
): Promise<{ cold: Done[]; warmedUp: Done[]; reports: Extract<Report, { is: Kind }>[]; began: number }> {
  const { program, processes, job, cold, warmUp, task, signal } = assignment;
  const members = Array.from(
    { length: processes },
    (_, worker) => new Member(program, { ...job, worker, workers: processes }),
  );
  const all = <T>(step: string, milliseconds: number, each: (member: Member) => Promise<T>): Promise<T[]> =>
    pTimeout(Promise.all(members.map(each)), {
      milliseconds,
      message: `hangs: did not ${step} within ${Math.round(milliseconds / 1000)} s`,
      signal,
    });
  const run = <End extends "done" | "stood">(
    end: End,
    { load, duration }: Task<Load | Still>,
    from: number,
    compileEarly: boolean,
  ) => {
    const wait = load.is === "load" ? load.wait : 0;
    const until = from + duration * 1_000;
    return all("finish", duration + wait + SPARE, (member) => {
      const heard = member.hears(end);
      member.tell({ do: "start", load, from, until, compileEarly });
      return heard;
    });
  };
  const soon = (): number => micros() + NOTICE * 1_000;
  const progress = setInterval(
    () => assignment.onProgress(members.reduce((sum, { acquired }) => sum + acquired, 0)),
    PROGRESS_EVERY,
  );
  try {
    await all("start", START_WITHIN, (member) => member.hears("ready"));
    const begun = cold ? await run("done", cold, soon(), false) : [];
    const warmedUp = warmUp ? await run("done", warmUp, soon(), true) : [];
    await onStart();
    const began = soon();
    const reports = await run(kind, task, began, true);
    return { cold: begun, warmedUp, reports, began };
  } finally {
    clearInterval(progress);
    await Promise.all(members.map((member) => member.leave(LEAVE_WITHIN)));
  }
}
