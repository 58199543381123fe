import { calmStretches, GRACE, hasLostResult, hasLostTurn, hasOldResult } from "./excuses.ts";
import type { Call, Got, Hold, Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** A call and what it got of the run of another one. */
type Replay = Call & { readonly got: Got };

/** By then the result of a run was stored: its caller, or another one, had it. */
interface Known {
  readonly run: Hold;
  readonly at: number;
  readonly stored: number;
  readonly call: Call;
}

/** What the callers of `remember` get; that one run excludes another, the rules of locks say. */
export function results(story: Story): Violation[] {
  const calls = story.calls.filter(({ kind }) => kind === "remember");
  return [...new Set(calls.map(({ lock }) => lock))].flatMap((lock) => {
    const runs = story.holds.get(lock) ?? [];
    const byName = new Map(runs.map((run) => [nameOf(run.call), run]));
    const replays = calls.filter((call): call is Replay => call.lock === lock && call.got !== null);
    const known = [...runs.flatMap(ofRunner), ...replays.flatMap((call) => ofReplay(call, byName))];
    known.sort((one, other) => one.at - other.at);
    const first = new Map([...known].reverse().map((one) => [nameOf(one.run.call), one]));
    return [
      ...replays.flatMap((call) => foreign(call, byName.get(call.got.value))),
      ...twice(story, known),
      ...older(story, known, replays),
      ...replays.flatMap((call) => over(story, call, first.get(call.got.value))),
      ...again(story, runs, first),
    ];
  });
}

function ofRunner(run: Hold): Known[] {
  const { at = 0, stored = 0 } = run.unlocked ?? {};
  return stored > 0 ? [{ run, at, stored, call: run.call }] : [];
}

function ofReplay(call: Replay, runs: ReadonlyMap<string, Hold>): Known[] {
  const { at, value, stored } = call.got;
  const run = runs.get(value);
  return run ? [{ run, at, stored, call }] : [];
}

/** What a call gets was made by the run that it names, whose body has ended, and returned it. */
function foreign(call: Replay, run: Hold | undefined): Violation[] {
  const { token, value, at } = call.got;
  const why = unfit(call, run);
  if (why === null) return [];
  const what = `${nameOf(call)} got "${value}" as the result of the run of ${call.lock} with token ${token}, ${why}`;
  return [{ rule: "results of runs", what, at, calls: run ? [run.call, call] : [call] }];
}

function unfit({ got: { token, at }, fingerprint }: Replay, run: Hold | undefined): string | null {
  if (!run) return "which no run has made";
  if (run.token !== token) return `which the run with token ${run.token} has made`;
  if (run.call.throws) return "whose body throws";
  if (run.unlock === null || run.unlock > at) return "whose body had not ended";
  const isFor = fingerprint === undefined || fingerprint === run.call.fingerprint;
  return isFor ? null : `which is for ${run.call.fingerprint}, and not for ${fingerprint}`;
}

/** A result is stored once: all its callers have the same time. */
function twice(story: Story, known: readonly Known[]): Violation[] {
  const first = new Map<Hold, Known>();
  return known.flatMap((one) => {
    const { run, at, stored, call } = one;
    const other = first.get(run);
    first.set(run, one);
    if (!other || other.stored === stored || hasOldResult(story, { from: endOfBody(run), to: at })) return [];
    const what = `the result of ${nameOf(run.call)} was stored at ${other.stored}, as ${nameOf(other.call)} got it, and at ${stored}, as ${nameOf(call)} did`;
    return [{ rule: "results are stored once", what, at, calls: [run.call, other.call, call] }];
  });
}

/** A call that begins after another one has had a result gets no older one. */
function older(story: Story, known: readonly Known[], replays: readonly Replay[]): Violation[] {
  let newest: Known | undefined;
  let next = 0;
  return [...replays]
    .sort((one, other) => one.asked - other.asked)
    .flatMap((call) => {
      for (let one = known[next]; one && one.at < call.asked; one = known[++next])
        if (!newest || one.run.token > newest.run.token) newest = one;
      const { at, token } = call.got;
      if (!newest || token >= newest.run.token) return [];
      if (hasOldResult(story, { from: endOfBody(newest.run), to: at })) return [];
      const what = `${nameOf(call)} got a result of ${call.lock} with token ${token}, after ${nameOf(newest.call)} had one with token ${newest.run.token}`;
      return [{ rule: "no older result", what, at, calls: [newest.call, call] }];
    });
}

/** A call that begins after `keep`, or after the result was forgotten, does not get it. */
function over(story: Story, call: Replay, known: Known | undefined): Violation[] {
  if (!known) return [];
  const { run, at } = known;
  const { lock, asked, got } = call;
  const isKept = asked - at <= keepOf(run) * (1 + GRACE.rate) + GRACE.keep * 1_000;
  const forget = story.forgets.find(
    (one) => one.lock === lock && one.isDone && one.from > at && one.to < asked,
  );
  if (isKept && !forget) return [];
  // It may have waited for an earlier run of its process, which Redis had forgotten.
  const inside = (story.holds.get(lock) ?? []).filter(
    (one) => one.call.by === call.by && one.from < asked && (one.unlock ?? story.over) > asked,
  );
  const from = Math.min(...[run, ...inside].map((one) => one.from));
  if (hasLostTurn(story, { from, to: got.at })) return [];
  const why = forget ? "was forgotten" : "had ended";
  const what = `${nameOf(call)} got the result of ${nameOf(run.call)}, which ${why} before it asked`;
  return [{ rule: "results end", what, at: got.at, calls: [run.call, call] }];
}

/**
 * No body runs when there is a result for its caller: for `keep`, and, while nothing is wrong, longer for
 * one that has waited for it.
 */
function again(story: Story, runs: readonly Hold[], first: ReadonlyMap<string, Known>): Violation[] {
  const calm = calmStretches(story);
  let last: Hold | null = null;
  return [...runs]
    .sort((one, other) => one.token - other.token)
    .flatMap((run) => {
      const before = last;
      if (run.unlock !== null && !run.call.throws) last = run;
      const known = before && first.get(nameOf(before.call));
      if (!known || !isAfter(run, known)) return [];
      const { asked, lock } = run.call;
      const end = endOfBody(before);
      const isKept = run.from < end + keepOf(before) * (1 - GRACE.rate) - GRACE.keep * 1_000;
      const hasWaited =
        end - asked > GRACE.soon * 1_000 &&
        run.from - end < GRACE.waiter * 1_000 &&
        calm.some(({ from, to }) => from <= asked && run.from <= to);
      if (run.from <= end || !(isKept || hasWaited)) return [];
      if (hasLostResult(story, lock, { from: end, to: run.from })) return [];
      const what = `${nameOf(run.call)} ran ${lock} ${ms(run.from - end)} after the body of ${nameOf(before.call)}, whose result it was to get`;
      return [{ rule: "no run beside a result", what, at: run.from, calls: [before.call, run.call] }];
    });
}

/**
 * Did Redis let this one run after it had stored the result of that one? Until its deadline that one
 * excludes others, and the store ends it.
 */
const isAfter = (run: Hold, { run: before, at }: Known): boolean =>
  run.call.asked > at || before.deadline >= at;

const endOfBody = ({ unlock, from }: Hold): number => unlock ?? from;

/** µs. */
const keepOf = ({ call }: Hold): number => (call.keep ?? 0) * 1_000;
