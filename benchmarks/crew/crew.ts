import pTimeout from "p-timeout";
import { micros } from "../workers/clock.ts";
import type { Job, Report } from "../workers/protocol.ts";
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
  /** ms for which callers begin acquisitions; what they have begun is finished afterwards. */
  readonly duration: number;
  readonly signal: AbortSignal;
  readonly onProgress: (acquired: number) => void;
}

const PROGRESS_EVERY = 250;

/**
 * Runs the worker processes of one round: all are connected before any begins. Every step ends, and so do the
 * processes, whatever happens.
 *
 * @throws Error that says which worker hung, failed or died
 */
export async function runCrew<Kind extends "done" | "stood">(
  kind: Kind,
  assignment: Assignment,
  onStart: () => Promise<void>,
): Promise<{ reports: Extract<Report, { is: Kind }>[]; began: number }> {
  const { program, processes, job, duration, signal } = assignment;
  const wait = job.load.is === "load" ? job.load.wait : 0;
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
  const progress = setInterval(
    () => assignment.onProgress(members.reduce((sum, { acquired }) => sum + acquired, 0)),
    PROGRESS_EVERY,
  );
  try {
    await all("start", START_WITHIN, (member) => member.hears("ready"));
    await onStart();
    const began = micros();
    const reports = await all("finish", duration + wait + SPARE, (member) => {
      const heard = member.hears(kind);
      member.tell({ do: "start", until: began + duration * 1_000 });
      return heard;
    });
    return { reports, began };
  } finally {
    clearInterval(progress);
    await Promise.all(members.map((member) => member.leave(LEAVE_WITHIN)));
  }
}
