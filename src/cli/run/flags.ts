import { constants } from "node:os";
import { quoteWhole } from "../../util/quote.ts";
import { choice, count, duration, type Flag, flag, text } from "../args.ts";
import { didYouMean } from "../closest.ts";
import { UsageError } from "../exit-codes.ts";

/** Of every command that runs another one under a lock. */
export const RUNNING = {
  lease: duration(
    null,
    "how long the others wait when this machine dies; renewed while the command runs. Default: 30s",
  ),
  signal: signalName("s", "what the command gets first when it has to stop. Default: TERM"),
  "kill-after": duration(
    "k",
    "how long it then has until SIGKILL. When Redis is away it gets the signal this long before the end of the lease. Default: 5s, at most a third of the lease. A signal that holdfast gets is handed on, and no SIGKILL follows it",
  ),
  "on-loss": choice("when the lock is lost: stop the command, or only say so. Default: kill", "kill", "warn"),
  shell: text("c", "<line>", "a line for /bin/sh, instead of a command behind --"),
  label: text(
    null,
    "<text>",
    "what those that wait are shown, beside host and process. Default: the command's name",
  ),
  "redis-wait": duration(
    null,
    "how long to try while Redis cannot be reached, as while it restarts. Default: 0, and of run what --wait says",
  ),
};

export const RUN = {
  wait: duration("w", "how long to wait. Default: for ever"),
  "no-wait": flag("n", "the same as --wait 0"),
  ...RUNNING,
  "max-hold": duration(null, "stop the command after this time, as timeout(1); exit code 124"),
  every: duration(
    null,
    "at most one run in this time over all machines; exit code 0 where another one has run it",
  ),
  aligned: flag(null, "with --every: by slots of the server's clock, so 1h is once in each hour"),
  slots: count(null, "a semaphore: so many commands at a time", 1, 1_000_000),
  shared: flag(null, "a read lock: any number of these at a time, and no --exclusive one"),
  exclusive: flag(
    "x",
    "the write lock of the same read-write lock; without both flags it is a plain lock, which knows nothing of them",
  ),
  fair: flag(null, "first come, first served over all machines"),
  "conflict-exit-code": count("E", "what to exit with when somebody else has it. Default: 75", 0, 255),
};

/** "TERM", "SIGTERM" or 15. */
function signalName(short: string, help: string): Flag<NodeJS.Signals> {
  const read = (text: string, flag: string) => {
    const name = text.toUpperCase().replace(/^(SIG)?/, "SIG");
    const known = Object.entries(constants.signals);
    const found = known.find(([one, number]) => one === name || String(number) === text);
    if (found) return found[0] as NodeJS.Signals;
    const names = known.map(([one]) => one.replace("SIG", ""));
    const meant = didYouMean(name.replace("SIG", ""), names);
    throw new UsageError(
      `${flag} takes the name of a signal, such as TERM or INT, not ${quoteWhole(text)}${meant}`,
    );
  };
  return { short, shows: "<signal>", help, read };
}
