import { EXIT } from "../exit-codes.ts";
import type { Output } from "../output.ts";
import { type Ended, start } from "./command.ts";
import { gone } from "./group.ts";
import { Guard, type Held } from "./guard.ts";
import type { Plan } from "./plan.ts";
import type { Signals } from "./signals.ts";

/** What became of a command. */
export interface Outcome extends Ended {
  readonly cause: Guard["cause"];
}

/** Keys of the terminal, and its end, reach the command in its group by themselves: sent again they would come twice. */
const FROM_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGHUP"]);

/** Under a lock of a run around this one, which looks after it. */
export const UNGUARDED: Held = {
  signal: new AbortController().signal,
  remaining: () => Number.POSITIVE_INFINITY,
};

/** Runs the command while that is held. Resolves when nothing of the command runs any more. @throws ExitError */
export async function runUnder(
  held: Held,
  plan: Plan,
  environment: Readonly<Record<string, string>>,
  signals: Signals,
  output: Output,
): Promise<Outcome> {
  const { group, hasTerminal, ended } = await start(plan.command, environment);
  const pass = (signal: NodeJS.Signals): void => {
    if (!hasTerminal || !FROM_TERMINAL.has(signal)) group.signal(signal);
  };
  // RACE: it came while the command was being started, and was meant for that.
  if (signals.received) pass(signals.received);
  signals.to(pass);
  const guard = new Guard(group, held, plan, output);
  try {
    const how = await ended;
    await gone(group, (size) =>
      output.say(
        `The command has ended, and ${size === 1 ? "a process" : `${size} processes`} of it still run: the lock is kept for them.`,
      ),
    );
    return { ...how, cause: guard.cause };
  } finally {
    guard.end();
    signals.to(null);
  }
}

export function exitCodeOf({ cause, code }: Outcome, { stopsOnLoss }: Plan): number {
  if (cause === "lost" && stopsOnLoss) return EXIT.lost;
  return cause === "max-hold" ? EXIT.tooLong : code;
}
