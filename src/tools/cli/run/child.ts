import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { isatty } from "node:tty";
import { quoteWhole } from "../../../util/quote.ts";
import { EXIT, ExitError } from "../exit-codes.ts";
import type { Output } from "../output.ts";
import { type Group, gone, OwnGroup } from "./group.ts";
import { Guard, type Held } from "./guard.ts";
import type { Plan } from "./plan.ts";
import { everything } from "./processes.ts";
import { codeOf, type Signals, Stopping } from "./signals.ts";
import { TerminalGroup } from "./terminal-group.ts";

/** How a command ended. */
interface Ended {
  /** Its exit code; 128 + n: signal n ended it. */
  readonly code: number;
  readonly signal: NodeJS.Signals | null;
}

/** A running command. */
interface Running {
  readonly group: Group;
  readonly ended: Promise<Ended>;
}

/**
 * Starts the command. Without a terminal it gets its own session and group, so that signals reach
 * all of its processes. With one it must stay in the foreground group to read from the terminal,
 * and gets Ctrl-C and other keys from it directly.
 *
 * @throws ExitError if it cannot be started.
 */
async function start(
  [file, ...args]: readonly [string, ...string[]],
  environment: Readonly<Record<string, string | undefined>>,
  hasTerminal: boolean,
): Promise<Running> {
  const before = hasTerminal ? everything() : null;
  let child: ChildProcess;
  try {
    child = spawn(file, args, {
      stdio: "inherit",
      detached: !hasTerminal,
      env: { ...process.env, ...environment },
    });
    await once(child, "spawn");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // For a script, ENOENT may mean the program named after #!.
    const isThere = file.includes("/") && existsSync(file);
    if (code === "ENOENT" && !isThere)
      throw new ExitError(EXIT.notFound, `${quoteWhole(file)} cannot be run: there is no such command.`);
    const why = isThere && code === "ENOENT" ? "the program named after #! does not exist" : message;
    throw new ExitError(EXIT.cannotRun, `${quoteWhole(file)} cannot be run: ${why}.`);
  }
  const ended = new Promise<Ended>((resolve) => {
    child.once("exit", (code, signal) =>
      resolve({ code: signal === null ? (code ?? 0) : codeOf(signal), signal }),
    );
  });
  const pid = child.pid as number; // It exists: the command was started.
  return { group: hasTerminal ? new TerminalGroup(pid, before) : new OwnGroup(pid), ended };
}

/** How a command ended, and why. */
export interface Outcome extends Ended {
  readonly cause: Guard["cause"];
  /** A signal that told this program to end while it was stopping the command because of a loss. */
  readonly told: NodeJS.Signals | null;
}

/**
 * Keys of the terminal, and its end, reach the command's group directly: if they were sent again,
 * they would come twice.
 */
const FROM_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGHUP"]);

/** After these a stopped command is continued, so that it receives them, as timeout(1) does. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(["SIGTERM", "SIGINT", "SIGHUP"]);

/** Signals that tell a program to end. */
const TELLING: ReadonlySet<NodeJS.Signals> = new Set([...ENDING, "SIGQUIT"]);

/** Under the lock of an enclosing run, which watches it. */
export const UNGUARDED: Held = {
  signal: new AbortController().signal,
  remaining: Number.POSITIVE_INFINITY,
};

/**
 * Runs the command while the lock is held. `started`: called when it runs. Resolves when none of
 * the command's processes runs any more. @throws ExitError
 */
export async function runUnder(
  held: Held,
  plan: Plan,
  environment: Readonly<Record<string, string | undefined>>,
  signals: Signals,
  output: Output,
  started: () => void = () => {},
): Promise<Outcome> {
  output.mayBlock = false;
  // RACE: this program may have been paused, or have waited for a terminal, since it got the lock.
  if (held.signal.aborted || held.remaining <= plan.killAfter) {
    output.fail("The lock was lost, or about to be, before the command was started: it was not run.");
    return { code: EXIT.lost, signal: null, cause: "lost", told: null };
  }
  if (process.pid === 1)
    output.say(
      "As process 1 of a container holdfast leaves zombies of processes that outlive their parent: start the container with an init (docker run --init).",
    );
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  // With a terminal, the terminal stops the command, which may want to restore the terminal first.
  const stopping = hasTerminal ? null : new Stopping();
  let guard: Guard | null = null;
  let told: NodeJS.Signals | null = null;
  try {
    const { group, ended } = await start(plan.command, environment, hasTerminal);
    started();
    const pass = (signal: NodeJS.Signals): void => {
      if (guard?.cause && TELLING.has(signal)) told = signal;
      if (hasTerminal && FROM_TERMINAL.has(signal)) return;
      group.signal(signal);
      if (ENDING.has(signal)) group.signal("SIGCONT");
    };
    // RACE: the signal came while the command was being started, and was meant for it.
    if (signals.received) pass(signals.received);
    signals.to(pass);
    const guarding = new Guard(group, held, plan, output);
    guard = guarding;
    stopping?.of(group, () => guarding.resume());
    const how = await ended;
    await gone(group, (size) =>
      output.say(
        size === 1
          ? "The command has ended, and a process of it still runs: the lock is kept for it."
          : `The command has ended, and ${size} processes of it still run: the lock is kept for them.`,
      ),
    );
    return { ...how, cause: guarding.cause, told };
  } finally {
    guard?.end();
    stopping?.end();
    signals.to(null);
  }
}

export function exitCodeOf({ cause, code }: Outcome, { stopsOnLoss }: Plan): number {
  if (cause === "lost" && stopsOnLoss) return EXIT.lost;
  return cause === "max-hold" ? EXIT.tooLong : code;
}
