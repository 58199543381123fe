import type { Waits } from "../contenders/contender.ts";

/** What is saved of anything that was measured. */
export interface Measured {
  /** What is measured, in a sentence. */
  readonly about: string;
  readonly seed: number;
  readonly machine: Machine;
  /** Measured on a busy machine: the share of it that other processes used. Null: it was quiet. */
  readonly busy: number | null;
}

/** One scenario of a run, as it is written to `results/<scenario>.json`. */
export interface ScenarioResult extends Measured {
  readonly scenario: string;
  readonly rounds: number;
  readonly entries: readonly Entry[];
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly redis: string;
  readonly java: string | null;
  readonly date: string;
}

/** One contender in one scenario. */
export interface Entry {
  readonly id: string;
  readonly title: string;
  readonly waits: Waits;
  /**
   * Medians over the rounds, the greatest `inside`, sums of overlaps, timeouts, errors and losses;
   * without `waits`. Null when every round failed.
   */
  readonly figures: Figures | null;
  /** The rounds themselves, in the order in which they ran. */
  readonly rounds: readonly Figures[];
  /** Why rounds are missing, each reason once: a hang, a crash, "mvn is not installed". */
  readonly trouble: readonly string[];
}

export type Figures = LoadFigures | StillFigures;

/** Of callers in a closed loop. Null: not measured in this scenario. All latencies in ms. */
export interface LoadFigures {
  readonly is: "load";
  /** Acquisitions of the process with the fewest, before those that count. */
  readonly warmUp: number;
  /**
   * CPU time in ms of a new process until it had made 1 000 and 2 000 acquisitions, its start left
   * out; median of the processes. Null: none made so many.
   */
  readonly coldFirst1000: number | null;
  readonly coldFirst2000: number | null;
  /** The longest wait of new processes, from the first moment on. Null: nobody got the lock. */
  readonly coldWaitMax: number | null;
  readonly perSecond: number;
  /** Release called → next holder running, of those who were waiting already. */
  readonly handoffMedian: number | null;
  readonly handoffP99: number | null;
  readonly waitMedian: number;
  readonly waitP99: number;
  readonly waitMax: number;
  /** Mean of release called − acquired. */
  readonly hold: number;
  /** Commands sent to Redis per acquisition; a script counts as one. */
  readonly calls: number | null;
  /**
   * Calls of write(2) per acquisition: of the clients, and of the server, whose replies and
   * messages may share one.
   */
  readonly writes: number | null;
  readonly redisWrites: number;
  /** CPU time per acquisition in µs. */
  readonly redisCpu: number;
  readonly clientCpu: number;
  /**
   * Jain's index over the callers, median over the seconds: 1 = all got the same, 1/n = one got
   * everything.
   */
  readonly jain: number | null;
  /** The most callers that had one name at a time. */
  readonly inside: number;
  /** How often one got in that must not have, because others were inside. */
  readonly overlaps: number;
  readonly timeouts: number;
  readonly errors: number;
  readonly messages: readonly string[];
  /** A few hundred waits of the round, evenly picked in ascending order, for the distribution. */
  readonly waits: readonly number[];
}

/** Of callers that hold or wait while nothing happens. */
export interface StillFigures {
  readonly is: "still";
  /** Commands sent to Redis in 10 s, a third of the default lease. */
  readonly callsPerPeriod: number | null;
  /** Shares of one core. */
  readonly clientShare: number;
  readonly redisShare: number;
  /** Heap bytes of each caller, and Node timers of the process. */
  readonly bytesEach: number;
  readonly timers: number;
  /** Held: locks that were lost. Parked: calls that ended although nothing was released. */
  readonly lost: number;
  readonly messages: readonly string[];
}
