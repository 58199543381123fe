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

/** How a command has ended. */
interface Ended {
  /** What it returned; 128 + n where signal n has ended it. */
  readonly code: number;
  readonly signal: NodeJS.Signals | null;
}

/** A command that runs. */
interface Running {
  readonly group: Group;
  readonly ended: Promise<Ended>;
}

/**
 * Without a terminal the command has a session and a group of its own, so that signals reach all
 * that it starts. With one it must stay in the foreground group, or it could not read from the
 * terminal; what is typed there, Ctrl-C too, reaches it from the terminal.
 *
 * @throws ExitError where it cannot be started.
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
    // Of a script ENOENT may mean what it names behind #!.
    const isThere = file.includes("/") && existsSync(file);
    if (code === "ENOENT" && !isThere)
      throw new ExitError(EXIT.notFound, `${quoteWhole(file)} cannot be run: there is no such command.`);
    const why = isThere && code === "ENOENT" ? "what it names behind #! is not there" : message;
    throw new ExitError(EXIT.cannotRun, `${quoteWhole(file)} cannot be run: ${why}.`);
  }
  const ended = new Promise<Ended>((resolve) => {
    child.once("exit", (code, signal) =>
      resolve({ code: signal === null ? (code ?? 0) : codeOf(signal), signal }),
    );
  });
  const pid = child.pid as number; // It is there: the command was started.
  return { group: hasTerminal ? new TerminalGroup(pid, before) : new OwnGroup(pid), ended };
}

/** What became of a command. */
export interface Outcome extends Ended {
  readonly cause: Guard["cause"];
  /** A signal by which this program was told to end, while it was stopping the command for a loss. */
  readonly told: NodeJS.Signals | null;
}

/**
 * Keys of the terminal, and its end, reach the command in its group by themselves: sent again they
 * would come twice.
 */
const FROM_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGHUP"]);

/** Those after which one that is stopped goes on to hear them, as of timeout(1). */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(["SIGTERM", "SIGINT", "SIGHUP"]);

/** Those that tell a program to end. */
const TELLING: ReadonlySet<NodeJS.Signals> = new Set([...ENDING, "SIGQUIT"]);

/** Under a lock of a run around this one, which looks after it. */
export const UNGUARDED: Held = {
  signal: new AbortController().signal,
  remaining: Number.POSITIVE_INFINITY,
};

/**
 * Runs the command while that is held. `started`: called when it runs. Resolves when nothing of the
 * command runs any more. @throws ExitError
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
  // RACE: this program may have stood still, or have waited for a terminal, since it got the lock.
  if (held.signal.aborted || held.remaining <= plan.killAfter) {
    output.fail("The lock was lost, or about to be, before the command was started: it was not run.");
    return { code: EXIT.lost, signal: null, cause: "lost", told: null };
  }
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  // With a terminal the command is stopped by that, and may want to put it in order first.
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
    // RACE: it came while the command was being started, and was meant for that.
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
