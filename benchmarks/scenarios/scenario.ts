import type { Load, Still } from "../workers/protocol.ts";

/** Something to measure, for every contender that takes part. */
export interface Scenario {
  readonly name: string;
  /** In a sentence, for people. */
  readonly about: string;
  readonly processes: number;
  readonly load: Load | Still;
  /**
   * ms that count, after a warm-up. Where each caller has so many acquisitions and no more: ms
   * after which it must be over.
   */
  readonly duration: number;
  /**
   * So many short rounds for each that was asked for. Where contenders are close, they must
   * alternate faster than the machine's speed drifts.
   */
  readonly slices: number;
  /** Ids from the registry. */
  readonly contenders: readonly string[];
}

/** Callers of one hot lock that want it again and again. */
export const LOAD: Load = {
  is: "load",
  tasks: 1,
  names: ["bench"],
  own: 0,
  turns: null,
  hold: 0,
  think: 0,
  leases: [null],
  wait: 60_000,
  writer: null,
  times: null,
};
