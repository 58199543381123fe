import type { Waits } from "../contenders/contender.ts";
import type { Program } from "./member.ts";

/** A contender as the coordinator sees it, whatever it is written in. */
export interface Player {
  readonly id: string;
  readonly title: string;
  readonly waits: Waits;
  /** How many callers it lets in at a time, besides a writer, that is alone. */
  readonly room: number;
  /** The contender's id in the registry, and the library that it measures: null is the present one. */
  readonly contender: string;
  readonly library: string | null;
  readonly warmUp: WarmUp;
  readonly program: Program;
  readonly isJava: boolean;
  /** Commands sent, by the server's statistics, for a program that cannot count them itself. */
  readonly countAtServer: ((before: Calls, after: Calls) => number) | null;
}

/** What a process does before its figures count: until its code is compiled, and its connections are open. */
export interface WarmUp {
  /** Acquisitions of each process; null: as many as there is time for. */
  readonly acquisitions: number | null;
  /** ms at most for so many processes, which share the processors. */
  readonly ms: (processes: number) => number;
}

/** Calls of each command. */
export type Calls = ReadonlyMap<string, number>;
