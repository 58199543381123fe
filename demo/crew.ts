import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import pTimeout from "p-timeout";
import type { Driver } from "./connect.ts";
import type { Shop } from "./shop.ts";
import type { Strategy } from "./strategies.ts";

/** What every worker process is told. */
interface Task {
  readonly strategy: Strategy;
  readonly url: string;
  readonly worker: number;
}

/** What a worker process of a run is to do. */
export interface Job extends Task {
  /** The servers of the quorum; empty for the other strategies. */
  readonly quorum: readonly string[];
  readonly driver: Driver;
  readonly shop: Shop;
  readonly leaseTime: number;
  readonly isFenced: boolean;
  /**
   * Where it is stopped or killed: in the middle of a sale, or between two commands of a wrong lock;
   * null: nowhere.
   */
  readonly naps: "sale" | "gap" | null;
  /** The orders that this worker serves. */
  readonly orders: readonly number[];
  /** How many of them come at the same moment; the next one comes when one has been served. */
  readonly tills: number;
}

/** What a process of the shop that stays open is to do, until it is told to leave. */
export interface Shift extends Task {
  /** Stands before all its keys. */
  readonly prefix: string;
}

/** What a worker process says. */
export type Report =
  | { is: "ready" }
  /** It is where it may be stopped, and waits for a word before it goes on. */
  | { is: "at the place" }
  /**
   * `waits`: of all its orders, in ms. `sent`: commands to Redis, on all its connections.
   * `charges`: how often it has charged a customer. `refused`: sales that the shop did not take,
   * because the lock had gone. `deleted`: locks of other holders that it deleted.
   */
  | { is: "done"; waits: number[]; sent: number; charges: number; refused: number; deleted: number }
  | { is: "failed"; why: string };

/** What a worker process is told. With the second word it is stopped at the same place again. */
export type Word = "start" | "go on" | "go on, and stop no more" | "leave";

type Done = Extract<Report, { is: "done" }>;

/** Far more than a run takes on a slow machine: something hangs. */
const START_WITHIN_MS = 30_000;
const WORK_WITHIN_MS = 120_000;
const LEAVE_WITHIN_MS = 10_000;

/**
 * The worker processes of one run. Every step ends: with all of them, with the first that fails or
 * dies, or when it takes too long. Call `dismiss()` in any case.
 */
export class Crew {
  readonly #members: readonly Member[];
  readonly #signal: AbortSignal;

  /**
   * Starts one process of this program for each job. When the signal aborts, the step that is under
   * way rejects with its reason.
   */
  constructor(program: string, jobs: readonly (Job | Shift)[], signal: AbortSignal) {
    this.#signal = signal;
    this.#members = jobs.map((job) => new Member(program, job));
  }

  /**
   * Resolves when every worker is connected and waits for the word, so that start-up time is not
   * measured.
   */
  async ready(): Promise<void> {
    await this.#all("start", START_WITHIN_MS, (member) => member.hears("ready"));
  }

  /** Gives all of them the word at once, and resolves with their reports when the last has finished. */
  work(): Promise<Done[]> {
    return this.#all("finish their orders", WORK_WITHIN_MS, (member) => {
      member.tell("start");
      return member.hears("done");
    });
  }

  /**
   * The same with a first member that is stopped (SIGSTOP) where its job says. The others begin
   * then, and when `enough` resolves the first one goes on: until it comes there again, or with
   * true to its end.
   */
  async workWithNaps(enough: () => Promise<boolean>): Promise<Done[]> {
    const [sleeper] = this.#members;
    if (!sleeper) return [];
    sleeper.tell("start");
    await this.#within("come to their first sale", WORK_WITHIN_MS, sleeper.hears("at the place"));
    sleeper.signal("SIGSTOP");
    const dones = this.#all("finish their orders", WORK_WITHIN_MS, (member) => {
      if (member !== sleeper) member.tell("start");
      return member.hears("done");
    });
    const naps = async (): Promise<void> => {
      for (let isLast = false; !isLast; ) {
        isLast = await enough();
        const next = Promise.race([sleeper.hears("at the place"), sleeper.hears("done")]);
        next.catch(() => {}); // after the last nap nobody listens
        sleeper.signal("SIGCONT");
        sleeper.tell(isLast ? "go on, and stop no more" : "go on");
        if (isLast) return;
        if ((await next).is === "done") return;
        sleeper.signal("SIGSTOP");
      }
    };
    // When a worker fails while the first one is stopped, the whole has failed.
    const [done] = await Promise.all([dones, naps()]);
    return done;
  }

  /**
   * The first member begins when `busy` resolves, is killed (SIGKILL) where its job says, and
   * resolves with what `after` finds then. The others are left as they are: they may wait forever.
   */
  async workWithCrash<T>(busy: () => Promise<void>, after: () => Promise<T>): Promise<T> {
    const [victim, ...others] = this.#members;
    const story = async (): Promise<T> => {
      for (const member of others) member.tell("start");
      await busy();
      victim?.tell("start");
      await victim?.hears("at the place");
      victim?.signal("SIGKILL");
      await victim?.fails().catch(() => {});
      return after();
    };
    const failures = others.map((member) => member.fails());
    return this.#within("come to the crash", WORK_WITHIN_MS, Promise.race([story(), ...failures]));
  }

  /** Gives all of them the word, and resolves when `closing` aborts; rejects when one of them fails. */
  async sellUntil(closing: AbortSignal): Promise<void> {
    for (const member of this.#members) member.tell("start");
    const closed = closing.aborted ? Promise.resolve() : once(closing, "abort");
    await Promise.race([closed, ...this.#members.map((member) => member.fails())]);
  }

  /**
   * Lets them end the sales that are under way, and resolves with their reports when they have
   * ended by themselves.
   */
  close(): Promise<Done[]> {
    return this.#all("end", LEAVE_WITHIN_MS, async (member) => {
      const done = member.hears("done");
      member.tell("leave");
      const report = await done;
      await member.ends();
      return report;
    });
  }

  /** Lets them close their connections and end by themselves. */
  async leave(): Promise<void> {
    await this.#all("end", LEAVE_WITHIN_MS, (member) => {
      member.tell("leave");
      return member.ends();
    });
  }

  /** Ends every worker that is still there, whatever it is doing. */
  dismiss(): void {
    for (const member of this.#members) member.signal("SIGKILL");
  }

  #all<T>(step: string, milliseconds: number, each: (member: Member) => Promise<T>): Promise<T[]> {
    return this.#within(step, milliseconds, Promise.all(this.#members.map(each)));
  }

  #within<T>(step: string, milliseconds: number, work: Promise<T>): Promise<T> {
    return pTimeout(work, {
      milliseconds,
      message: `The workers did not ${step} within ${milliseconds / 1000} s`,
      signal: this.#signal,
    });
  }
}

class Member {
  readonly #child: ChildProcess;
  /** Never resolves; rejects when the worker fails, or dies. */
  readonly #failure: Promise<never>;
  readonly #exit: Promise<unknown>;

  constructor(program: string, job: Job | Shift) {
    this.#child = fork(program, {
      execArgv: [],
      env: { ...process.env, HOLDFAST_DEMO_JOB: JSON.stringify(job) },
    });
    this.#exit = once(this.#child, "exit");
    this.#failure = new Promise((_, reject) => {
      const fail = (why: string) => reject(new Error(`Worker ${job.worker} (${job.strategy}) ${why}`));
      this.#child.on("error", (error) => fail(`has trouble: ${error.message}`));
      this.#child.on("exit", (code, signal) =>
        fail(`ended before its work did (${signal ?? `exit code ${code}`})`),
      );
      this.#child.on("message", (report: Report) => {
        if (report.is === "failed") fail(`failed: ${report.why}`);
      });
    });
    // Between two steps nobody listens; the next one will.
    this.#failure.catch(() => {});
    this.#exit.catch(() => {});
  }

  tell(word: Word): void {
    if (this.#child.connected) this.#child.send(word);
  }

  async hears<Kind extends "ready" | "at the place" | "done">(
    kind: Kind,
  ): Promise<Extract<Report, { is: Kind }>> {
    let hear = (_: Report): void => {};
    const heard = new Promise<Extract<Report, { is: Kind }>>((resolve) => {
      hear = (report) => {
        if (report.is === kind) resolve(report as Extract<Report, { is: Kind }>);
      };
      this.#child.on("message", hear);
    });
    return Promise.race([heard, this.#failure]).finally(() => this.#child.off("message", hear));
  }

  fails(): Promise<never> {
    return this.#failure;
  }

  async ends(): Promise<void> {
    await this.#exit;
    if (this.#child.exitCode !== 0) await this.#failure;
  }

  signal(signal: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    this.#child.kill(signal);
  }
}
