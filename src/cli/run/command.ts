import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { quoteWhole } from "../../util/quote.ts";
import { EXIT, ExitError } from "../exit-codes.ts";
import { everything, type Group, OwnGroup, TerminalGroup } from "./group.ts";

/** How a command has ended. */
export interface Ended {
  /** What it returned; 128 + n where signal n has ended it. */
  readonly code: number;
  readonly signal: NodeJS.Signals | null;
}

/** A command that runs. */
export interface Running {
  readonly group: Group;
  readonly ended: Promise<Ended>;
}

/**
 * Without a terminal the command has a session and a group of its own, so that signals reach all that it starts. With one it must
 * stay in the foreground group, or it could not read from the terminal; what is typed there, Ctrl-C too, reaches it
 * from the terminal.
 *
 * @throws ExitError where it cannot be started.
 */
export async function start(
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

/** As shells have it. */
export const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];
