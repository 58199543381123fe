import { fileURLToPath } from "node:url";
import { contenders } from "../contenders/all.ts";
import type { Waits } from "../contenders/contender.ts";
import { javaPlayers } from "./java.ts";
import type { Program } from "./member.ts";

/** A contender as the coordinator sees it, whatever it is written in. */
export interface Player {
  readonly id: string;
  readonly title: string;
  readonly waits: Waits;
  /** ms of load for each process before it counts: until the code is compiled, and the crowd has formed. */
  readonly warmUp: number;
  readonly program: Program;
  readonly isJava: boolean;
  /** Commands sent, by the server's statistics, for a program that cannot count them itself. */
  readonly countAtServer: ((before: Calls, after: Calls) => number) | null;
}

/** Calls of each command. */
export type Calls = ReadonlyMap<string, number>;

const WORKER = fileURLToPath(new URL("../workers/worker.js", import.meta.url));
const WARM_UP = 500;
/**
 * V8 compiles what has run often. A service has run for hours; here 32 processes run each for seconds, and would be
 * measured in the interpreter: a hand-off of Holdfast took 1 214 µs of CPU time there, of the floor's token 507 µs;
 * with an earlier compiler 735 and 301.
 */
const COMPILE_EARLY = "--interrupt-budget=10000";

/** All that can play on this machine, by id. `profile`: where Node writes what its workers did with their time. */
export function findPlayers(profile: string | null): ReadonlyMap<string, Player> {
  const watch = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  const program = { command: process.execPath, args: ["--expose-gc", COMPILE_EARLY, ...watch, WORKER] };
  const node = Object.entries(contenders).map(([id, { title, waits }]): Player => {
    return { id, title, waits, warmUp: WARM_UP, program, isJava: false, countAtServer: null };
  });
  return new Map([...node, ...javaPlayers()].map((player) => [player.id, player]));
}
