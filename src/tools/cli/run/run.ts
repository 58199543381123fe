import { type LockClient, LockLostError, LockTimeoutError, LockUnavailableError } from "../../../index.ts";
import { quoteWhole } from "../../../util/quote.ts";
import { type Call, command } from "../command.ts";
import { type Connected, connect } from "../connection.ts";
import { showDuration } from "../durations.ts";
import { EXIT, type ExitError, failureOf, judge, UsageError } from "../exit-codes.ts";
import type { Output } from "../output.ts";
import { exitCodeOf, type Outcome, runUnder, UNGUARDED } from "./child.ts";
import {
  type Acquired,
  acquire,
  conflicts,
  covers,
  environmentOf,
  type Fenced,
  type Inherited,
  inheritable,
  inheritedFrom,
  isStillHeld,
} from "./hold.ts";
import { clientOptions, RUN, type RunPlan, runPlanOf, type Wanted } from "./plan.ts";
import { holderInWords, WaitReport, withHolder } from "./report.ts";
import { codeOf, dieBy, endWaiting, Interrupted, Signals } from "./signals.ts";

/** The report of `--json`, in one line on stderr at the end. */
interface Report {
  readonly outcome: "exited" | "busy" | "lost" | "max-hold" | "skipped" | "interrupted";
  readonly code: number;
  /** The signal that ended the command, or the wait. */
  readonly signal?: NodeJS.Signals | null;
  readonly tokens?: readonly number[];
  readonly waitedFor?: number;
}

/** Common to all ways of running. */
interface Job {
  readonly plan: RunPlan;
  readonly locks: LockClient;
  readonly signals: Signals;
  /**
   * Aborted by a signal that comes before the command is started, or when Redis refuses this
   * program.
   */
  readonly stopping: AbortSignal;
  readonly output: Output;
  /** What the enclosing runs hold. */
  readonly around: readonly Inherited[];
}

async function run(call: Call<typeof RUN>): Promise<number> {
  const signals = new Signals();
  const { code, signal = null } = await reported(call, signals);
  await dieBy(signal, code, signals, call.output);
  return code;
}

async function reported(
  { values, positionals, rest, output }: Call<typeof RUN>,
  signals: Signals,
): Promise<{ readonly code: number; readonly signal?: NodeJS.Signals | null }> {
  let connected: Connected | null = null;
  const ending = new AbortController();
  const stopping = endWaiting(signals, ending);
  try {
    const asked = runPlanOf(values, positionals, rest);
    const began = performance.now();
    const patience = {
      signal: stopping,
      wait: asked.redisWait,
      say: (line: string) => output.say(line),
      // It ends only the wait: a running command has its lease.
      refused: (why: ExitError) => ending.abort(why),
    };
    connected = await connect(values, clientOptions(asked), patience);
    const { locks } = connected;
    locks.on("error", (error) => output.say(error.message));
    const left = asked.wait - (performance.now() - began);
    const plan = {
      ...asked,
      wait: values["redis-wait"] === undefined ? Math.max(0, Math.round(left)) : asked.wait,
    };
    const report = await runJob({ plan, locks, signals, stopping, output, around: inheritedFrom() });
    output.mayBlock = true;
    output.reportJson({ ...report, names: plan.names });
    return report;
  } catch (error) {
    output.mayBlock = true;
    const { received } = signals;
    if (error instanceof Interrupted && received) {
      const report: Report = { outcome: "interrupted", code: codeOf(received), signal: received };
      output.reportJson({ ...report, names: [...new Set(positionals)] });
      return report;
    }
    const { code, message } = judge(error);
    output.fail(message);
    output.reportJson({ outcome: failureOf(code), code, names: positionals, message });
    return { code };
  } finally {
    await connected?.close();
  }
}

async function runJob(job: Job): Promise<Report> {
  const { plan, locks, around, stopping } = job;
  const { wanted, names } = plan;
  const known = around.filter((one) => names.includes(one.name) && conflicts(wanted.kind, one.kind));
  const inTheWay: Inherited[] = [];
  for (const one of known) if (await isStillHeld(locks, one)) inTheWay.push(one);
  stopping.throwIfAborted();
  if (inTheWay.length > 0) return borrow(job, inTheWay);
  return wanted.kind === "once" ? runOnce(job, wanted) : runLocked(job, wanted);
}

/** An enclosing run holds it, so waiting for it would never end. */
async function borrow({ plan, signals, output, around }: Job, held: readonly Inherited[]): Promise<Report> {
  const { wanted, names } = plan;
  const borrowed = names.flatMap(
    (name) => held.find((one) => one.name === name && covers(wanted.kind, one.kind)) ?? [],
  );
  if (wanted.kind === "permit")
    throw new UsageError(
      `The run around this one has a slot of ${quoteWhole(names[0])}, and several such runs could wait for each other forever: give the slots of this one another name.`,
    );
  const [first] = held;
  if (borrowed.length < names.length)
    throw new UsageError(
      `The run around this one holds ${quoteWhole(first?.name ?? "")}, and this one would wait for it forever: take all that both need in the outer one.`,
    );
  output.detail("The run around this one holds the lock: borrowed.");
  const outcome = await runUnder(
    UNGUARDED,
    plan,
    environmentOf(borrowed, plan.lease, around),
    signals,
    output,
  );
  return reportOf(outcome, plan, borrowed, 0);
}

async function runLocked(job: Job, wanted: Exclude<Wanted, { kind: "once" }>): Promise<Report> {
  const { plan, locks, signals, stopping, output, around } = job;
  const { names } = plan;
  const began = performance.now();
  let inTheWay: string = names[0];
  locks.on("wait", ({ name }) => {
    inTheWay = name;
  });
  const report = new WaitReport(() => holderInWords(locks, inTheWay, wanted), output);
  try {
    const lease = await acquire(locks, { ...plan, wanted }, stopping);
    // RACE: the lock is held from here on, and a second Ctrl-C would end this program before it is
    // given back.
    signals.to(null);
    report.stop();
    const waited = performance.now() - began;
    try {
      // A lock granted by message has only the grant window: that would look like a lease without
      // renewals.
      if (lease.remaining < plan.lease / 2) await lease.extend(plan.lease);
      if (signals.received) throw new Interrupted();
      output.detail(`Got ${names.map(quoteWhole).join(", ")} after ${showDuration(waited)}.`);
      lease.wanted.addEventListener("abort", () => output.detail("Another caller waits for the lock now."));
      const now = inheritable(wanted.kind, lease.held, locks.id);
      const environment = environmentOf(lease.held, plan.lease, [...around, ...now]);
      const outcome = await runUnder(lease, plan, environment, signals, output);
      return reportOf(await released(lease, outcome, output), plan, lease.held, waited);
    } finally {
      await lease.leave().catch(() => {});
    }
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error;
    const words = await holderInWords(locks, inTheWay, wanted).catch(() => null);
    output.say(`Could not get ${words ?? withHolder(inTheWay, error)}.`);
    return { outcome: "busy", code: plan.conflictCode, waitedFor: Math.round(performance.now() - began) };
  } finally {
    report.stop();
    signals.to(null);
  }
}

/** Gives it back. That may reveal an earlier loss. */
async function released(lease: Pick<Acquired, "leave">, outcome: Outcome, output: Output): Promise<Outcome> {
  try {
    await lease.leave();
  } catch (error) {
    // Reported already, if the command was stopped for it.
    if (outcome.cause !== "lost") output.fail((error as Error).message);
    if (error instanceof LockLostError) return { ...outcome, cause: "lost" };
    if (!(error instanceof LockUnavailableError)) throw error;
  }
  return outcome;
}

/**
 * If the command fails, its turn stays until the lease ends, so that a later call runs it again.
 */
class Failed extends Error {
  constructor(readonly outcome: Outcome) {
    super("the command has failed");
  }
}

async function runOnce(
  { plan, locks, signals, stopping, output, around }: Job,
  { every, aligned }: Extract<Wanted, { kind: "once" }>,
): Promise<Report> {
  const [name] = plan.names;
  let token = 0;
  let outcome: Outcome | null = null;
  try {
    const result = await locks.runOnce(name, { every, aligned, signal: stopping }, async (turn) => {
      signals.to(null);
      if (signals.received) throw new Interrupted();
      token = turn.begin * 1_000;
      const environment = environmentOf([{ name, token }], plan.lease, around);
      outcome = await runUnder(turn, plan, environment, signals, output);
      if (exitCodeOf(outcome, plan) !== 0) throw new Failed(outcome);
    });
    if (!result.ran) {
      output.detail(
        result.running
          ? `${quoteWhole(name)} runs on another machine now.`
          : `${quoteWhole(name)} has run, and runs again in ${showDuration(result.remaining)} at the earliest.`,
      );
      return { outcome: "skipped", code: EXIT.ok };
    }
  } catch (error) {
    if (error instanceof LockLostError && outcome !== null)
      outcome = { ...(outcome as Outcome), cause: "lost" };
    else if (!(error instanceof Failed)) throw error;
  } finally {
    signals.to(null);
  }
  if (outcome === null) throw new Error("the command did not run");
  return reportOf(outcome, plan, [{ name, token }], 0);
}

function reportOf(outcome: Outcome, plan: RunPlan, held: readonly Fenced[], waitedFor: number): Report {
  return {
    outcome: outcome.cause ?? "exited",
    code: exitCodeOf(outcome, plan),
    signal: outcome.signal,
    tokens: held.flatMap(({ token = [] }) => token),
    waitedFor: Math.round(waitedFor),
  };
}

export const RUN_COMMAND = command(
  {
    name: "run",
    summary: "runs a command while it holds a lock",
    usage: ["run [flags] <name>… -- <command> [args…]", "run [flags] --shell <line> <name>…"],
    examples: [
      ["holdfast run backup -- ./backup.sh --full", 'waits for the lock "backup", then runs the script'],
      ["holdfast run --no-wait deploy -- make deploy", "exits with 75 at once if a deployment is running"],
      [
        "holdfast run --every 1h --aligned report -- node report.js",
        "in the crontab of every machine: one machine runs it each hour",
      ],
      ["holdfast run account:1 account:2 -- ./transfer", "takes both locks or none"],
      ["holdfast run --slots 4 encode -- ffmpeg …", "at most four at a time"],
    ],
    notes: [
      "Exit code: that of the command, or 128 + n if signal n ended it. 64: bad command line. 69: Redis does not answer, or refuses. 75 (-E): the lock was not free in time. 79: the lock was lost. 124: --max-hold was reached. 126, 127: the command cannot be run, does not exist.",
      "Environment of the command: HOLDFAST_LOCK (the name; several one per line), HOLDFAST_TOKEN (the fencing token of each; not with --slots), HOLDFAST_LEASE_MS, and HOLDFAST_HOLD, by which a nested run of the same name can borrow the lock.",
    ],
    flags: RUN,
  },
  run,
);
