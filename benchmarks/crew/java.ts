import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { buildJava, classpathOf, whyNoJava } from "../../tools/build/maven.ts";
import type { Program } from "./member.ts";
import type { Calls, Player, WarmUp } from "./player.ts";

// From build/benchmarks/crew to the sources.
const FOLDER = fileURLToPath(new URL("../../../redisson/", import.meta.url));
/**
 * A JVM interprets at first; its figures count when the hot code is compiled. Its slowest lock
 * would take minutes for 2 000.
 */
const WARM_UP: WarmUp = { acquisitions: null, ms: (processes) => 1_250 * Math.max(2, processes) };
/**
 * Without it the compilers of several JVMs fight over two cores: 4 processes x 4 callers reached
 * 495 acquisitions/s after 5 s and 1 174 after 25 s, with it 1 631 after 5 s.
 */
const QUICK_COMPILER = "-XX:TieredStopAtLevel=1";

/** The real Redisson. */
export function javaPlayers(): Player[] {
  const program = javaProgram("holdfast.bench.Worker");
  const player = (id: string, title: string, waits: Player["waits"]): Player => {
    const shared = { room: 1, library: null, warmUp: WARM_UP, program, isJava: true, countAtServer };
    return { id, title, waits, contender: id, ...shared };
  };
  return [
    player("java-lock", "Redisson RLock (Java)", "broadcast"),
    player("java-fair-lock", "Redisson RFairLock (Java)", "hand-off"),
  ];
}

/** Starts this class of the project. */
export function javaProgram(main: string, ...args: string[]): Program {
  return { command: "java", args: ["-Xmx512m", QUICK_COMPILER, "-cp", classpathOf(FOLDER), main, ...args] };
}

/** Compiles the Java worker, once. Answers why it cannot run; null when it can. */
export function buildWorker(): string | null {
  const obstacle = whyNoJava();
  if (obstacle !== null) return obstacle;
  try {
    buildJava(FOLDER);
    return null;
  } catch (error) {
    return String(error);
  }
}

export function javaVersion(): string | null {
  const { stderr } = spawnSync("java", ["-version"], { encoding: "utf8" });
  return /version "([^"]+)"/.exec(stderr ?? "")?.[1] ?? null;
}

/**
 * What Redisson sends, so that its scripts' own calls do not count: checked against MONITOR. The
 * GET stands for a DEL: each unlock script reads the latch once, and each unlock deletes the latch
 * afterwards.
 */
const SENT = ["evalsha", "eval", "script|load", "subscribe", "unsubscribe", "ping", "get"];

function countAtServer(before: Calls, after: Calls): number {
  return SENT.reduce((sum, command) => sum + (after.get(command) ?? 0) - (before.get(command) ?? 0), 0);
}
