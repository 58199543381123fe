import { setTimeout as pause } from "node:timers/promises";
import type { Election, LockClient, Term } from "../../../index.ts";
import { showParty } from "../../../inside.ts";
import { quoteWhole } from "../../../util/quote.ts";
import { visible } from "../../../util/visible.ts";
import { flag, text } from "../args.ts";
import { type Call, command } from "../command.ts";
import { type Connected, connect } from "../connection.ts";
import { EXIT, type ExitError, failureOf, judge, UsageError } from "../exit-codes.ts";
import type { Output } from "../output.ts";
import { exitCodeOf, type Outcome, runUnder } from "./child.ts";
import { environmentOf, inheritedFrom, isStillHeld } from "./hold.ts";
import { clientOptions, type Plan, planOf, RUNNING } from "./plan.ts";
import { WaitReport } from "./report.ts";
import { codeOf, dieBy, endWaiting, Interrupted, Signals } from "./signals.ts";

const FLAGS = {
  ...RUNNING,
  observe: flag(null, "run nothing: print the leader, now and at each change"),
  value: text(null, "<text>", "shown to observers while this machine leads, such as an address"),
};

/**
 * The pause before it campaigns again, in ms, and how long a new term may take to get its whole
 * lease.
 */
const AGAIN = 150;
const WHOLE = 1_500;

async function elect({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const [name, further] = positionals;
  if (name === undefined || further !== undefined)
    throw new UsageError("holdfast elect takes one name: holdfast elect scheduler -- ./scheduler");
  if (values.observe && (rest !== null || values.shell !== undefined))
    throw new UsageError("--observe runs nothing: leave out the command.");
  const plan = values.observe ? null : planOf(values, rest, null);
  const signals = new Signals();
  const stopping = new AbortController();
  const signal = endWaiting(signals, stopping);
  const leading = { now: false };
  let connected: Connected | null = null;
  let ended: { readonly code: number; readonly signal: NodeJS.Signals | null };
  try {
    const patience = {
      signal,
      wait: values["redis-wait"] ?? 0,
      say: (line: string) => output.say(line),
      // A term that has begun has its lease.
      refused: (why: ExitError) => leading.now || stopping.abort(why),
    };
    connected = await connect(values, plan === null ? {} : clientOptions(plan), patience);
    const { locks } = connected;
    locks.on("error", (error) => output.say(error.message));
    if (plan === null) return await observe(locks.election(name), signal, output);
    await refuseInside(locks, name);
    ended = await lead({ name, plan, locks, value: values.value ?? "", signals, stopping, leading, output });
  } catch (error) {
    const { received } = signals;
    const isInterrupted = error instanceof Interrupted && received !== null;
    if (plan === null && isInterrupted) return codeOf(received);
    if (plan === null) throw error;
    output.mayBlock = true;
    if (!isInterrupted) {
      const { code, message } = judge(error);
      output.fail(message);
      output.reportJson({ outcome: failureOf(code), code, names: [name], message });
      return code;
    }
    ended = { code: codeOf(received), signal: received };
    output.reportJson({ outcome: "interrupted", code: ended.code, names: [name], tokens: [] });
  } finally {
    await connected?.close();
  }
  await dieBy(ended.signal, ended.code, signals, output);
  return ended.code;
}

async function refuseInside(locks: LockClient, name: string): Promise<void> {
  for (const one of inheritedFrom()) {
    const isSame = one.kind === "election" && one.name === name;
    if (isSame && (await isStillHeld(locks, one)))
      throw new UsageError(
        `The command around this one leads ${quoteWhole(name)}, and this one would wait for it forever: give it another name.`,
      );
  }
}

/** Until a signal comes, or Redis refuses this program: throws its reason. */
async function observe(election: Election, signal: AbortSignal, output: Output): Promise<never> {
  for await (const leader of election.observe({ signal })) {
    if (output.isJson) output.printJson(leader);
    else output.print(leader === null ? "nobody" : `${withoutRandom(leader.id)}  ${visible(leader.value)}`);
  }
  throw signal.reason;
}

/** The printable part of a client's id: label, host and process. */
const withoutRandom = (id: string): string => visible(id.replace(/:[0-9a-f]{16}$/, ""));

interface Candidate {
  readonly name: string;
  readonly plan: Plan;
  readonly locks: LockClient;
  readonly value: string;
  readonly signals: Signals;
  /** Aborted when a signal ends the candidacy. */
  readonly stopping: AbortController;
  /** Is its command running? */
  readonly leading: { now: boolean };
  readonly output: Output;
}

async function lead({ name, plan, locks, value, signals, stopping, leading, output }: Candidate) {
  const election = locks.election(name);
  let outcome: Outcome | null = null;
  let token = 0;
  let report = waitFor(election, name, output);
  const body = async (term: Term): Promise<Outcome> => {
    leading.now = true;
    report.stop();
    await whole(term, plan);
    if (signals.received) throw new Interrupted();
    token = term.token;
    const around = [...inheritedFrom(), { kind: "election" as const, name, token }];
    const environment = environmentOf([term], plan.lease, around);
    const leads = () => output.say(`Leads ${visible(name)}.`);
    outcome = await runUnder(term, plan, environment, signals, output, leads);
    leading.now = false;
    // After a loss it must not campaign again if a signal has asked it to stop meanwhile. Earlier
    // signals, such as SIGHUP, were for the command.
    if (outcome.told) stopping.abort(new Interrupted());
    else signals.forget();
    // RACE: signals that come while the lead is given back must not interrupt that, however many
    // come.
    if (term.held) signals.to(() => stopping.abort(new Interrupted()));
    else endWaiting(signals, stopping);
    report = waitFor(election, name, output);
    return outcome;
  };
  try {
    stopping.signal.throwIfAborted();
    for (;;) {
      const ended = await election.runAsLeader({ value, signal: stopping.signal }, body);
      // The command was stopped for a loss that did not happen after all: it is a candidate again.
      if (!ended.value?.cause || stopping.signal.aborted) break;
      await pause(AGAIN);
    }
    // It ended as a candidate: by a signal, or because Redis refuses this program.
    if (outcome === null) stopping.signal.throwIfAborted();
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
  } finally {
    report.stop();
    signals.to(null);
  }
  output.mayBlock = true;
  const ended = outcome as Outcome | null;
  const signal = ended === null ? signals.received : ended.signal;
  const code = ended !== null ? exitCodeOf(ended, plan) : signal ? codeOf(signal) : EXIT.ok;
  output.reportJson({
    outcome: ended?.cause ?? (ended === null ? "interrupted" : "exited"),
    code,
    names: [name],
    tokens: [token],
  });
  return { code, signal };
}

const waitFor = (election: Election, name: string, output: Output): WaitReport =>
  new WaitReport(async () => {
    const leader = await election.leader();
    return leader === null ? null : `${quoteWhole(name)}: led by ${showParty(leader)}`;
  }, output);

/**
 * A term that was handed over begins with a short time, which is raised at once: that must not
 * count as a failing renewal.
 */
async function whole(term: Term, { lease }: Plan): Promise<void> {
  const since = performance.now();
  while (term.held && term.remaining < lease / 2 && performance.now() - since < WHOLE) await pause(10);
}

export const ELECT = command(
  {
    name: "elect",
    summary: "runs a command on one of many machines, and on another if that fails",
    usage: ["elect [flags] <name> -- <command> [args…]", "elect --observe <name>"],
    examples: [
      [
        "holdfast elect scheduler --value $HOSTNAME:8080 -- ./scheduler",
        "on every machine: one runs it, the others wait",
      ],
      [
        "holdfast elect --lease 10s scheduler -- ./scheduler",
        "the next machine takes over at most 12 s after a crash",
      ],
      ["holdfast elect --observe --json scheduler", "a line of JSON at each change of leader"],
    ],
    notes: [
      "When this machine loses the lead, the command is stopped as by holdfast run, and the machine is a candidate again. When the command ends by itself, holdfast exits with its code, and the next machine leads. Without --on-loss warn, two commands do not run at the same time.",
    ],
    flags: FLAGS,
  },
  elect,
);
