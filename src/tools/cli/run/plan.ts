import { constants } from "node:os";
import { basename } from "node:path";
import { quoteWhole } from "../../../util/quote.ts";
import { choice, count, duration, type Flag, flag, type Parsed, text } from "../args.ts";
import { didYouMean } from "../closest.ts";
import { UsageError } from "../exit-codes.ts";
import { cutLabel } from "../people.ts";

/** The flags of every command that runs another one under a lock. */
export const RUNNING = {
  lease: duration(
    null,
    "how long others wait if this machine dies; renewed while the command runs. Default: 30s",
  ),
  signal: signalName("s", "first signal for a command that must stop. Default: TERM"),
  "kill-after": duration(
    "k",
    "time from that signal to SIGKILL; if Redis is away, the signal is sent this long before the lease ends. Default: 5s, at most a third of the lease. No SIGKILL follows a signal that holdfast forwards",
  ),
  "on-loss": choice(
    "when the lock is lost: stop the command, or only report it. Default: kill",
    "kill",
    "warn",
  ),
  shell: text("c", "<line>", "run this line by /bin/sh, instead of a command after --"),
  label: text(null, "<text>", "shown to waiters, with host and process. Default: the command's name"),
  "redis-wait": duration(
    null,
    "how long to retry while Redis cannot be reached. Default: 0; for run, the value of --wait",
  ),
};

export const RUN = {
  wait: duration("w", "how long to wait for the lock. Default: without limit"),
  "no-wait": flag("n", "same as --wait 0"),
  ...RUNNING,
  "max-hold": duration(null, "stop the command after this time, like timeout(1); exit code 124"),
  every: duration(null, "at most one run per interval on all machines; exit code 0 if another one ran it"),
  aligned: flag(null, "with --every: slots of the server's clock, so 1h is once per clock hour"),
  slots: count(null, "a semaphore: at most n commands at a time", 1, 1_000_000),
  shared: flag(null, "a read lock: any number at a time, but none together with --exclusive"),
  exclusive: flag(
    "x",
    "the write lock of the same read-write lock; a lock without --shared and -x is independent of it",
  ),
  fair: flag(null, "first come, first served across all machines"),
  "conflict-exit-code": count("E", "exit code when another process holds the lock. Default: 75", 0, 255),
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

/** What to run, and how to stop it. */
export interface Plan {
  readonly command: readonly [file: string, ...args: string[]];
  readonly lease: number;
  readonly firstSignal: NodeJS.Signals;
  readonly killAfter: number;
  readonly stopsOnLoss: boolean;
  readonly label: string;
  /** ms; null: no limit. */
  readonly maxHold: number | null;
}

/** The kind of lock that it needs. */
export type Wanted =
  | { readonly kind: "lock"; readonly fair: boolean }
  | { readonly kind: "read" | "write"; readonly fair: boolean }
  | { readonly kind: "permit"; readonly slots: number }
  | { readonly kind: "once"; readonly every: number; readonly aligned: boolean };

export interface RunPlan extends Plan {
  readonly names: readonly [string, ...string[]];
  readonly wanted: Wanted;
  /** ms. */
  readonly wait: number;
  /** How many ms it tries to reach Redis. */
  readonly redisWait: number;
  readonly conflictCode: number;
}

const LEASE = 30_000;
const LEASE_LEAST = 1_000;
const KILL_AFTER = 5_000;

type Values<S> = {
  readonly [K in keyof S]: S[K] extends { read: (...args: never[]) => infer T } ? T | undefined : never;
};

/** @throws UsageError */
export function planOf(
  values: Values<typeof RUNNING>,
  rest: Parsed<never>["rest"],
  maxHold: number | null,
): Plan {
  const { shell, lease = LEASE, signal = "SIGTERM", "on-loss": onLoss = "kill" } = values;
  if (shell !== undefined && rest !== null)
    throw new UsageError("--shell has the command already: leave out --shell, or what comes after --.");
  const command = shell === undefined ? (rest ?? []) : ["/bin/sh", "-c", shell];
  const [file, ...args] = command;
  if (file === undefined || file === "")
    throw new UsageError("Say what to run after --, as in: holdfast run backup -- ./backup.sh --full");
  if (lease < LEASE_LEAST)
    throw new UsageError("--lease takes 1s at least: processes do not start and end faster than that.");
  const killAfter = values["kill-after"] ?? Math.min(KILL_AFTER, Math.floor(lease / 3));
  // A healthy lease has two thirds of its time left before each renewal; with less than half, one
  // has failed.
  if (killAfter > lease / 2)
    throw new UsageError(
      "--kill-after takes at most half of the lease, or the command would be stopped while all is well.",
    );
  const label =
    values.label ?? cutLabel(basename(shell === undefined ? file : (shell.trim().split(/\s+/)[0] ?? "sh")));
  return {
    command: [file, ...args],
    lease,
    firstSignal: signal,
    killAfter,
    stopsOnLoss: onLoss === "kill",
    label,
    maxHold,
  };
}

/** @throws UsageError */
export function runPlanOf(
  values: Values<typeof RUN>,
  names: readonly string[],
  rest: Parsed<never>["rest"],
): RunPlan {
  const plan = planOf(values, rest, values["max-hold"] ?? null);
  if (plan.maxHold === 0) throw new UsageError("--max-hold takes more than 0: the command needs some time.");
  const [first, ...others] = new Set(names);
  if (first === undefined) throw new UsageError("Say which lock: holdfast run <name> -- <command>");
  const given = (flag: keyof typeof RUN) => values[flag] !== undefined;
  const kinds = (["shared", "exclusive", "slots", "every"] as const).filter(given);
  if (kinds.length > 1)
    throw new UsageError(`--${kinds[0]} and --${kinds[1]} are different kinds of lock: give one of them.`);
  const [kind] = kinds;
  for (const [flag, doesNotFit, why] of REFUSED)
    if (given(flag) && doesNotFit(kind, others.length > 0)) throw new UsageError(`--${flag} ${why}.`);
  if (others.length > 0 && (kind === "slots" || kind === "every"))
    throw new UsageError(`--${kind} takes one name: there is no taking several of these together.`);
  if (given("wait") && given("no-wait")) throw new UsageError("--no-wait is --wait 0: give one of them.");
  return {
    ...plan,
    names: [first, ...others],
    wanted: wantedOf(values, kind),
    wait: given("no-wait") ? 0 : (values.wait ?? Number.POSITIVE_INFINITY),
    redisWait: values["redis-wait"] ?? values.wait ?? 0,
    conflictCode: values["conflict-exit-code"] ?? 75,
  };
}

type Kind = "shared" | "exclusive" | "slots" | "every" | undefined;

/** Combinations that make no sense, and why. */
const REFUSED: readonly (readonly [keyof typeof RUN, (kind: Kind, several: boolean) => boolean, string])[] = [
  [
    "wait",
    (kind) => kind === "every",
    "does not go with --every, which never waits: it runs the command, or another one has",
  ],
  ["no-wait", (kind) => kind === "every", "does not go with --every, which never waits anyway"],
  [
    "conflict-exit-code",
    (kind) => kind === "every",
    "does not go with --every, where it is no conflict that another one has run it",
  ],
  ["fair", (kind) => kind === "slots", "does not go with --slots, which are first come, first served anyway"],
  ["fair", (kind) => kind === "every", "does not go with --every, which never waits"],
  ["aligned", (kind) => kind !== "every", "says how --every counts: give that too"],
];

function wantedOf(values: Values<typeof RUN>, kind: Kind): Wanted {
  const fair = values.fair === true;
  const { slots, every } = values;
  if (slots !== undefined) return { kind: "permit", slots };
  if (every !== undefined) return { kind: "once", every, aligned: values.aligned === true };
  if (kind === "shared") return { kind: "read", fair };
  return kind === "exclusive" ? { kind: "write", fair } : { kind: "lock", fair };
}

/** A command that hangs must not use up the time of the next renewal. */
export const clientOptions = ({ lease, label }: Plan) => ({
  label,
  leaseTime: lease,
  replyTimeout: Math.min(5_000, Math.floor(lease / 3)),
});
